package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// NewOperator is a request for an operator.
type NewOperator struct {
	Email string
	Name  string
	Roles map[uuid.UUID]domain.Role // by workspace; uuid.Nil: every workspace
	// Password is the first password. If empty, the operator sets it with a link.
	Password string
}

// CreateOperator creates an operator. It returns the token of the link with which the person sets a password, unless
// the request has one. It fails with Invalid, and with Conflict for an email address that is in use.
func (s *Service) CreateOperator(ctx context.Context, n NewOperator) (o Operator, link string, err error) {
	row, err := s.newRow(ctx, n)
	if err != nil {
		return Operator{}, "", err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockOperators(ctx); err != nil {
			return err
		}
		r, err := s.insert(ctx, tx, row)
		if err != nil {
			return err
		}
		if o = r.operator(); n.Password == "" {
			link, err = s.addLink(ctx, tx, &o.ID, Invitation)
		}
		return err
	})
	return o, link, domain.Wrap(err, "create an operator")
}

// CreateFirst creates an administrator of every workspace with a password, unless there is an operator. It reports
// whether it did.
func (s *Service) CreateFirst(ctx context.Context, email, password string) (created bool, err error) {
	found, err := s.db.HasOperators(ctx)
	if err != nil || found {
		return false, domain.Wrap(err, "look for operators")
	}
	row, err := s.newRow(ctx, NewOperator{Email: email, Password: password, Roles: adminOfAll()})
	if err != nil {
		return false, err
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		created = false
		if err := tx.LockOperators(ctx); err != nil {
			return err
		}
		if found, err := tx.HasOperators(ctx); err != nil || found {
			return err
		}
		if err := tx.DeleteSetupLinks(ctx); err != nil {
			return err
		}
		_, err := s.insert(ctx, tx, row)
		created = err == nil
		return err
	})
	return created, domain.Wrap(err, "create the first operator")
}

func adminOfAll() map[uuid.UUID]domain.Role {
	return map[uuid.UUID]domain.Role{uuid.Nil: domain.RoleAdmin}
}

// newRow checks a request, and hashes its password.
func (s *Service) newRow(ctx context.Context, n NewOperator) (dbsqlc.Operator, error) {
	err := domain.All(checkEmail(n.Email), domain.CheckText("name", n.Name), checkRoles(n.Roles))
	if err == nil && n.Password != "" {
		err = CheckPassword(n.Password)
	}
	if err != nil {
		return dbsqlc.Operator{}, err
	}
	row := dbsqlc.Operator{OperatorID: domain.NewID(), Email: n.Email, Name: n.Name, Roles: encodeRoles(n.Roles)}
	if n.Password != "" {
		hash, err := s.passwords.hash(ctx, n.Password)
		if err != nil {
			return dbsqlc.Operator{}, err
		}
		row.PasswordHash = &hash
	}
	return row, nil
}

// insert inserts an operator while operators are locked. It fails with Conflict for an email address that is in use.
func (s *Service) insert(ctx context.Context, tx store.Tx, row dbsqlc.Operator) (record, error) {
	switch _, err := tx.GetOperatorByEmail(ctx, row.Email); {
	case err == nil:
		return record{}, &domain.Error{
			Kind:    domain.Conflict,
			Type:    "operator_exists",
			Field:   "email",
			Message: "There is an operator with this email address already.",
		}
	case !store.IsNoRows(err):
		return record{}, err
	}
	roles, err := decodeRoles(row.Roles)
	if err != nil {
		return record{}, err
	}
	if err := tx.InsertOperator(ctx, dbsqlc.InsertOperatorParams{
		OperatorID:   row.OperatorID,
		Email:        row.Email,
		Name:         row.Name,
		Roles:        row.Roles,
		PasswordHash: row.PasswordHash,
		Issuer:       row.Issuer,
		Subject:      row.Subject,
		Mac:          s.keys.MAC(record{row: row, roles: roles}.hashed()),
	}); err != nil {
		return record{}, err
	}
	stored, err := tx.GetOperator(ctx, row.OperatorID)
	if err != nil {
		return record{}, err
	}
	return s.openRecord(stored.Operator, stored.Passkeys)
}

// get reads an operator. It fails with NotFound.
func (s *Service) get(ctx context.Context, id uuid.UUID) (record, error) {
	return s.read(ctx, s.db.Queries, id)
}

func (s *Service) read(ctx context.Context, q *dbsqlc.Queries, id uuid.UUID) (record, error) {
	row, err := q.GetOperator(ctx, id)
	if store.IsNoRows(err) {
		return record{}, operatorNotFound()
	}
	if err != nil {
		return record{}, fmt.Errorf("read the operator %s: %w", id, err)
	}
	return s.openRecord(row.Operator, row.Passkeys)
}

// GetOperator reads an operator. It fails with NotFound.
func (s *Service) GetOperator(ctx context.Context, id uuid.UUID) (Operator, error) {
	r, err := s.get(ctx, id)
	return r.operator(), err
}

// GetListedOperator reads an operator as the lists do: also one whose row was changed in the database, which cannot
// sign in. It fails with NotFound.
func (s *Service) GetListedOperator(ctx context.Context, id uuid.UUID) (Operator, error) {
	r, err := s.db.GetOperator(ctx, id)
	if store.IsNoRows(err) {
		return Operator{}, operatorNotFound()
	}
	if err != nil {
		return Operator{}, fmt.Errorf("read the operator %s: %w", id, err)
	}
	return unchecked(r.Operator, r.Passkeys), nil
}

// FindOperator reads the operator of an email address. It fails with NotFound.
func (s *Service) FindOperator(ctx context.Context, email string) (Operator, error) {
	row, err := s.db.GetOperatorByEmail(ctx, domain.Storable(email))
	if store.IsNoRows(err) {
		return Operator{}, operatorNotFound()
	}
	if err != nil {
		return Operator{}, fmt.Errorf("look up the operator: %w", err)
	}
	return unchecked(row.Operator, row.Passkeys), nil
}

// Page selects a page of operators.
type Page struct {
	Search string // in the email address and the name
	// AfterAt and AfterID are the creation time and the identifier of the operator before the first one; zero: none.
	AfterAt time.Time
	AfterID uuid.UUID
	Limit   int
}

// ListOperatorsPage lists a page of operators, oldest first.
func (s *Service) ListOperatorsPage(ctx context.Context, page Page) ([]Operator, error) {
	rows, err := s.db.UnpreparedQueries.ListOperatorsPage(ctx, dbsqlc.ListOperatorsPageParams{
		Pattern: store.SearchPattern(page.Search),
		AfterAt: page.AfterAt,
		AfterID: page.AfterID,
		MaxRows: int32(page.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list the operators: %w", err)
	}
	out := make([]Operator, len(rows))
	for i, r := range rows {
		out[i] = unchecked(r.Operator, r.Passkeys)
	}
	return out, nil
}

// ListOperators lists every operator, oldest first. It includes those that were changed in the database, so that
// administrators can delete them; they cannot sign in.
func (s *Service) ListOperators(ctx context.Context) ([]Operator, error) {
	rows, err := s.db.ListOperators(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the operators: %w", err)
	}
	out := make([]Operator, len(rows))
	for i, r := range rows {
		out[i] = unchecked(r.Operator, r.Passkeys)
	}
	return out, nil
}

// unchecked returns an operator as the database has it. It must not decide what anyone may do.
func unchecked(row dbsqlc.Operator, passkeys int32) Operator {
	roles, _ := decodeRoles(row.Roles) // without roles if they cannot be read
	return record{row: row, roles: roles, totp: row.TotpSealed, passkeys: int(passkeys)}.operator()
}

// change changes an operator in a transaction, and seals its row again. It fails with NotFound, and with Conflict where
// no administrator would be left that can sign in.
func (s *Service) change(
	ctx context.Context,
	id uuid.UUID,
	f func(store.Tx, *record) error,
) (o Operator, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockOperators(ctx); err != nil {
			return err
		}
		before, err := s.read(ctx, tx.Queries, id)
		if err != nil {
			return err
		}
		after := before
		after.roles = maps.Clone(before.roles)
		if err := f(tx, &after); err != nil {
			return err
		}
		if err := s.save(ctx, tx, after); err != nil {
			return err
		}
		now, err := s.read(ctx, tx.Queries, id)
		if err != nil {
			return err
		}
		if o = now.operator(); s.isUsableAdmin(before.operator()) && !s.isUsableAdmin(o) {
			return s.requireAdmin(ctx, tx)
		}
		return nil
	})
	return o, err
}

// save stores a record.
func (s *Service) save(ctx context.Context, tx store.Tx, r record) error {
	var sealed []byte
	if len(r.totp) > 0 {
		sealed = s.keys.Seal(totpPlace(r.row.OperatorID), r.totp)
	}
	return tx.UpdateOperator(ctx, dbsqlc.UpdateOperatorParams{
		OperatorID:   r.row.OperatorID,
		Email:        r.row.Email,
		Name:         r.row.Name,
		Roles:        encodeRoles(r.roles),
		PasswordHash: r.row.PasswordHash,
		TotpSealed:   sealed,
		Issuer:       r.row.Issuer,
		Subject:      r.row.Subject,
		DisabledAt:   r.row.DisabledAt,
		Mac:          s.keys.MAC(r.hashed()),
	})
}

// isUsableAdmin reports whether an operator is an administrator of every workspace, and can sign in in a way that is
// switched on.
func (s *Service) isUsableAdmin(o Operator) bool {
	local := s.LocalSignIn() && (o.HasPassword || o.Passkeys > 0)
	return o.IsAdminOfAll() && o.CanSignIn() && (local || s.CanUseOIDC(o))
}

// requireAdmin fails with Conflict unless an administrator of every workspace can sign in.
func (s *Service) requireAdmin(ctx context.Context, tx store.Tx) error {
	rows, err := tx.ListOperators(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(rows, func(r dbsqlc.ListOperatorsRow) bool {
		checked, err := s.openRecord(r.Operator, r.Passkeys)
		return err == nil && s.isUsableAdmin(checked.operator())
	}) {
		return nil
	}
	return &domain.Error{
		Kind: domain.Conflict,
		Type: "last_admin",
		Message: "This is the last administrator of every workspace who can sign in. Make another operator " +
			"administrator first.",
	}
}

// SetRoles replaces the roles of an operator. It fails with Invalid, with NotFound, and with Conflict for the last
// administrator.
func (s *Service) SetRoles(ctx context.Context, id uuid.UUID, roles map[uuid.UUID]domain.Role) (Operator, error) {
	if err := checkRoles(roles); err != nil {
		return Operator{}, err
	}
	o, err := s.change(ctx, id, func(_ store.Tx, r *record) error {
		r.roles = roles
		return nil
	})
	return o, domain.Wrap(err, "set the roles of an operator")
}

// SetName sets the name of an operator. It fails with Invalid, and with NotFound.
func (s *Service) SetName(ctx context.Context, id uuid.UUID, name string) (Operator, error) {
	if err := domain.CheckText("name", name); err != nil {
		return Operator{}, err
	}
	o, err := s.change(ctx, id, func(_ store.Tx, r *record) error {
		r.row.Name = name
		return nil
	})
	return o, domain.Wrap(err, "set the name of an operator")
}

// SetDisabled disables an operator and ends its sessions, or enables it. It fails with NotFound, and with Conflict for
// the last administrator.
func (s *Service) SetDisabled(ctx context.Context, id uuid.UUID, disabled bool) (Operator, error) {
	o, err := s.change(ctx, id, func(tx store.Tx, r *record) error {
		if !disabled {
			r.row.DisabledAt = nil
			return nil
		}
		if r.row.DisabledAt == nil {
			now := s.opt.Now()
			r.row.DisabledAt = &now
		}
		if err := tx.DeleteLinksOfOperator(ctx, &id); err != nil {
			return err
		}
		return tx.DeleteSessionsOfOperator(ctx, dbsqlc.DeleteSessionsOfOperatorParams{OperatorID: id})
	})
	return o, domain.Wrap(err, "disable an operator")
}

// DeleteOperator deletes an operator, also one that was changed in the database. It fails with NotFound, and with
// Conflict for the last administrator.
func (s *Service) DeleteOperator(ctx context.Context, id uuid.UUID) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockOperators(ctx); err != nil {
			return err
		}
		row, err := tx.GetOperator(ctx, id)
		if store.IsNoRows(err) {
			return operatorNotFound()
		}
		if err != nil {
			return err
		}
		checked, forged := s.openRecord(row.Operator, row.Passkeys)
		if _, err := tx.DeleteOperator(ctx, id); err != nil {
			return err
		}
		if forged == nil && s.isUsableAdmin(checked.operator()) {
			return s.requireAdmin(ctx, tx)
		}
		return nil
	})
	return domain.Wrap(err, "delete an operator")
}

// ChangePassword sets the password of the operator of a session, and ends its other sessions and its links. It fails
// with Unauthorized for a wrong old password, and with Invalid for a bad new one. An operator without a password has
// no old one.
func (s *Service) ChangePassword(ctx context.Context, session Session, old, password string) error {
	if err := s.localOff(); err != nil {
		return err
	}
	if err := CheckPassword(password); err != nil {
		return err
	}
	r, err := s.get(ctx, session.Operator.ID)
	if err != nil {
		return err
	}
	if r.row.PasswordHash != nil {
		ok, err := s.passwords.matches(ctx, *r.row.PasswordHash, old)
		if err != nil {
			return err
		}
		if !ok {
			return unauthorized("sign_in_failed", "The old password is wrong.")
		}
	}
	hash, err := s.passwords.hash(ctx, password)
	if err != nil {
		return err
	}
	_, err = s.change(ctx, r.row.OperatorID, func(tx store.Tx, now *record) error {
		if domain.Value(now.row.PasswordHash) != domain.Value(r.row.PasswordHash) {
			return signInExpired()
		}
		now.row.PasswordHash = &hash
		if err := tx.DeleteLinksOfOperator(ctx, &r.row.OperatorID); err != nil {
			return err
		}
		return tx.DeleteSessionsOfOperator(ctx, dbsqlc.DeleteSessionsOfOperatorParams{
			OperatorID:    r.row.OperatorID,
			ExceptSession: &session.ID,
		})
	})
	return domain.Wrap(err, "change a password")
}
