package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Purpose is what a one-time link is for.
type Purpose string

// The purposes of links.
const (
	Setup      Purpose = "setup"      // creates the first operator
	Invitation Purpose = "invitation" // sets the first password of an operator
	Reset      Purpose = "reset"      // sets a new password of an operator
)

// Lifetimes of links.
const (
	SetupLifetime      = time.Hour
	InvitationLifetime = 72 * time.Hour
)

func (p Purpose) lifetime() time.Duration {
	if p == Setup {
		return SetupLifetime
	}
	return InvitationLifetime
}

// Link is a one-time link with which a person sets a password.
type Link struct {
	Purpose   Purpose
	Email     string // of the operator; empty for Setup
	Name      string
	ExpiresAt time.Time
}

// addLink creates a link, and returns its token. An operator has one link at a time. It also ends when the operator
// changes how it signs in, or signs in at the provider.
func (s *Service) addLink(ctx context.Context, tx store.Tx, operatorID *uuid.UUID, purpose Purpose) (string, error) {
	token, hash := newToken()
	row := dbsqlc.OperatorLink{
		OperatorLinkID: domain.NewID(),
		OperatorID:     operatorID,
		Purpose:        string(purpose),
		TokenHash:      hash,
		ExpiresAt:      s.opt.Now().Add(purpose.lifetime()),
	}
	var err error
	if operatorID == nil {
		err = tx.DeleteSetupLinks(ctx)
	} else {
		err = tx.DeleteLinksOfOperator(ctx, operatorID)
	}
	if err != nil {
		return "", err
	}
	return token, tx.InsertOperatorLink(ctx, dbsqlc.InsertOperatorLinkParams{
		OperatorLinkID: row.OperatorLinkID,
		OperatorID:     row.OperatorID,
		Purpose:        row.Purpose,
		TokenHash:      row.TokenHash,
		ExpiresAt:      row.ExpiresAt,
		Mac:            s.keys.MAC(hashedLink(row)),
	})
}

// FirstRunLink returns the token of a new link that creates the first operator, and invalidates the earlier one. It
// returns an empty token if there is an operator, or local sign-in is off.
func (s *Service) FirstRunLink(ctx context.Context) (token string, err error) {
	if s.opt.NoLocalSignIn {
		return "", nil
	}
	ctx = audit.Unasked(ctx)
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		token = ""
		if err := tx.LockOperators(ctx); err != nil {
			return err
		}
		found, err := tx.HasOperators(ctx)
		if err != nil || found {
			return err
		}
		token, err = s.addLink(ctx, tx, nil, Setup)
		return err
	})
	return token, domain.Wrap(err, "create the link for the first operator")
}

// ResetOperator removes the password, the one-time codes, and the passkeys of an operator, ends its sessions, and
// returns the token of a link that sets a new password. It fails with NotFound. It also resets the last
// administrator: it is for the commands of the server's machine.
func (s *Service) ResetOperator(ctx context.Context, id uuid.UUID) (link string, err error) {
	return s.reset(ctx, id, false)
}

// ResetUnlessLast is ResetOperator for the console. It fails with Conflict where no administrator would be left that
// can sign in.
func (s *Service) ResetUnlessLast(ctx context.Context, id uuid.UUID) (link string, err error) {
	return s.reset(ctx, id, true)
}

func (s *Service) reset(ctx context.Context, id uuid.UUID, keepsAdmin bool) (link string, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockOperators(ctx); err != nil {
			return err
		}
		r, err := s.read(ctx, tx.Queries, id)
		if err != nil {
			return err
		}
		wasUsable := s.isUsableAdmin(r.operator())
		r.row.PasswordHash, r.totp, r.passkeys = nil, nil, 0
		if err := s.save(ctx, tx, r); err != nil {
			return err
		}
		if err := tx.DeletePasskeysOfOperator(ctx, id); err != nil {
			return err
		}
		if keepsAdmin && wasUsable && !s.isUsableAdmin(r.operator()) {
			if err := s.requireAdmin(ctx, tx); err != nil {
				return err
			}
		}
		if err := tx.DeleteSessionsOfOperator(
			ctx,
			dbsqlc.DeleteSessionsOfOperatorParams{OperatorID: id},
		); err != nil {
			return err
		}
		link, err = s.addLink(ctx, tx, &id, Reset)
		return err
	})
	return link, domain.Wrap(err, "reset an operator")
}

func linkNotFound() *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "link_not_found",
		Message: "This link has expired, was used, or isn't valid. Ask an administrator for a new one.",
	}
}

// checkLink fails with NotFound for a link that cannot be used. r is the operator of the link; empty for Setup.
func (s *Service) checkLink(
	ctx context.Context,
	q *dbsqlc.Queries,
	row dbsqlc.OperatorLink,
	missing error,
) (r record, err error) {
	switch {
	case store.IsNoRows(missing):
		return r, linkNotFound()
	case missing != nil:
		return r, fmt.Errorf("look up the link: %w", missing)
	case !s.keys.Match(row.Mac, s.keys.MAC(hashedLink(row))) || !s.opt.Now().Before(row.ExpiresAt):
		return r, linkNotFound()
	}
	if row.OperatorID == nil {
		found, err := q.HasOperators(ctx)
		if err == nil && found {
			err = linkNotFound()
		}
		return r, err
	}
	r, err = s.read(ctx, q, *row.OperatorID)
	if err == nil && r.row.DisabledAt != nil {
		err = linkNotFound()
	}
	return r, err
}

// OpenLink returns what a link is for. It fails with NotFound for a link that cannot be used, and with Forbidden where
// local sign-in is off.
func (s *Service) OpenLink(ctx context.Context, token string) (Link, error) {
	if err := s.localOff(); err != nil {
		return Link{}, err
	}
	row, err := s.db.GetOperatorLink(ctx, hashToken(token))
	r, err := s.checkLink(ctx, s.db.Queries, row, err)
	if err != nil {
		return Link{}, domain.Wrap(err, "open a link")
	}
	return Link{Purpose: Purpose(row.Purpose), Email: r.row.Email, Name: r.row.Name, ExpiresAt: row.ExpiresAt}, nil
}

// Acceptance is what a person enters on the page of a link.
type Acceptance struct {
	Email    string // only for Setup
	Name     string // empty: unchanged
	Password string
}

// AcceptLink sets the password of the operator of a link, or creates the first operator, and ends the link. It returns
// the token of a new session. It fails with Invalid, and like OpenLink.
func (s *Service) AcceptLink(ctx context.Context, token string, a Acceptance, c Client) (string, error) {
	link, err := s.OpenLink(ctx, token)
	if err != nil {
		return "", err
	}
	checks := []error{domain.CheckText("name", a.Name), CheckPassword(a.Password)}
	if link.Purpose == Setup {
		checks = append(checks, checkEmail(a.Email))
	}
	if err := domain.All(checks...); err != nil {
		return "", err
	}
	hash, err := s.passwords.hash(ctx, a.Password)
	if err != nil {
		return "", err
	}
	id := domain.NewID() // of the first operator
	actor := Operator{ID: id, Email: a.Email}
	if link.Purpose != Setup {
		if actor, err = s.FindOperator(ctx, link.Email); err != nil {
			return "", err
		}
	}
	ctx = acting(ctx, actor, c, linkOperation)
	var session string
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockOperators(ctx); err != nil {
			return err
		}
		row, err := tx.LockOperatorLink(ctx, hashToken(token))
		r, err := s.checkLink(ctx, tx.Queries, row, err)
		if err != nil {
			return err
		}
		if row.OperatorID == nil {
			r, err = s.insert(ctx, tx, dbsqlc.Operator{
				OperatorID:   id,
				Email:        a.Email,
				Name:         a.Name,
				Roles:        encodeRoles(adminOfAll()),
				PasswordHash: &hash,
			})
		} else {
			r, err = s.setPassword(ctx, tx, r, a.Name, hash)
		}
		if err != nil {
			return err
		}
		if err := tx.DeleteOperatorLink(ctx, row.OperatorLinkID); err != nil {
			return err
		}
		session, err = s.startSession(ctx, tx, signIn{operator: r, method: ByLink, client: c})
		return err
	})
	return session, domain.Wrap(err, "accept a link")
}

// setPassword sets the password of an operator, and its name unless that is empty. It ends the operator's sessions.
func (s *Service) setPassword(ctx context.Context, tx store.Tx, r record, name, hash string) (record, error) {
	r.row.PasswordHash = &hash
	if name != "" {
		r.row.Name = name
	}
	if err := s.save(ctx, tx, r); err != nil {
		return record{}, err
	}
	if err := tx.DeleteSessionsOfOperator(
		ctx,
		dbsqlc.DeleteSessionsOfOperatorParams{OperatorID: r.row.OperatorID},
	); err != nil {
		return record{}, err
	}
	return s.read(ctx, tx.Queries, r.row.OperatorID)
}
