package access

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ConnectedAccount is an account as its workspace sees it: without its credentials.
type ConnectedAccount struct {
	ID               uuid.UUID
	Adapter          string
	DisplayName      string
	CustomerKey      string
	User             UserIdentifier
	ManageNewDevices bool
	Capabilities     []string // the kinds of devices that are taken from it
	Metadata         map[string]any
	Errors           []Problem
	CreatedAt        time.Time
}

// UserIdentifier says with what was logged in, or which gateway it is. Nothing in it is secret.
type UserIdentifier struct {
	APIURL   string `json:"api_url,omitempty"`
	Email    string `json:"email,omitempty"`
	Username string `json:"username,omitempty"`
}

func toConnectedAccount(r dbsqlc.ConnectedAccount) ConnectedAccount {
	a := ConnectedAccount{ID: r.ConnectedAccountID, Adapter: r.Adapter, DisplayName: r.DisplayName, CustomerKey: text(r.CustomerKey),
		ManageNewDevices: r.ManageNewDevices, Capabilities: r.AcceptedCapabilities, Metadata: metadata(r.CustomMetadata), Errors: accountErrors(r),
		CreatedAt: r.CreatedAt}
	_ = json.Unmarshal(r.UserIdentifier, &a.User) // written by this package
	return a
}

func accountErrors(r dbsqlc.ConnectedAccount) []Problem {
	if r.ErrorCode == nil {
		return nil
	}
	return []Problem{{Code: *r.ErrorCode, Message: text(r.ErrorMessage), Scope: OfAccount, At: at(r.ErrorAt)}}
}

// accountErrorOf is the error of an account as its devices keep it: null where it works.
func accountErrorOf(errs []Problem) []byte {
	if len(errs) == 0 {
		return nil
	}
	return mustJSON(accountTrouble{Code: errs[0].Code, Message: errs[0].Message, At: errs[0].At})
}

type accountTrouble struct {
	Code    string    `json:"code"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// readAccountError undoes accountErrorOf.
func readAccountError(kept []byte) []Problem {
	if kept == nil {
		return nil
	}
	var t accountTrouble
	if json.Unmarshal(kept, &t) != nil { // written by this package
		return nil
	}
	return []Problem{{Code: t.Code, Message: t.Message, At: t.At, Scope: OfAccount}}
}

func accountNotFound(what, value string) *Error {
	return &Error{Kind: NotFound, Type: "connected_account_not_found", Message: "Could not find a connected account with this " + what + ".", Data: map[string]any{what: value}}
}

// GetConnectedAccount reads an account by its identifier or, if that is empty, by its email address (the oldest).
// It fails with Invalid unless exactly one is given, and with NotFound.
func (s *Service) GetConnectedAccount(ctx context.Context, p Principal, id, email string) (ConnectedAccount, error) {
	if (id == "") == (email == "") {
		return ConnectedAccount{}, invalid("", "Must specify either connected_account_id or email")
	}
	var r dbsqlc.ConnectedAccount
	var err error
	missing := accountNotFound("email", email)
	if id != "" {
		missing = accountNotFound("connected_account_id", id)
		parsed, bad := uuid.Parse(id)
		if bad != nil {
			return ConnectedAccount{}, missing
		}
		r, err = s.db.GetWorkspaceAccount(ctx, dbsqlc.GetWorkspaceAccountParams{WorkspaceID: p.WorkspaceID, ConnectedAccountID: parsed})
		if err == nil && !p.reaches(r.ConnectedAccountID) {
			return ConnectedAccount{}, missing
		}
	} else {
		r, err = s.db.GetAccountByEmail(ctx, dbsqlc.GetAccountByEmailParams{WorkspaceID: p.WorkspaceID, Email: email, Scope: p.Reach})
	}
	switch {
	case store.IsNoRows(err):
		return ConnectedAccount{}, missing
	case err != nil:
		return ConnectedAccount{}, fmt.Errorf("read the account: %w", err)
	}
	return toConnectedAccount(r), nil
}

// AccountFilter is a set of conditions that must all hold; zero ones are none.
type AccountFilter struct {
	CustomerKey string
	Metadata    map[string]any
	Search      string // in its name, and in what it was logged in with
	Nothing     bool   // a condition that no account meets
}

// ListConnectedAccounts lists accounts, oldest first, and says whether more follow the page.
func (s *Service) ListConnectedAccounts(ctx context.Context, p Principal, f AccountFilter, page Page) ([]ConnectedAccount, bool, error) {
	if f.Nothing {
		return nil, false, nil
	}
	arg := dbsqlc.FindAccountsParams{WorkspaceID: p.WorkspaceID, AfterAt: page.After.At, AfterID: page.After.ID, MaxRows: page.rows(),
		CustomerKey: nonEmpty(f.CustomerKey), Search: nonEmpty(f.Search), Scope: p.Reach}
	var err error
	if arg.Metadata, arg.WithoutMetadata, err = metadataConditions(f.Metadata); err != nil {
		return nil, false, err
	}
	rows, err := s.db.PlannedAnew.FindAccounts(ctx, arg)
	if err != nil {
		return nil, false, fmt.Errorf("list the accounts: %w", err)
	}
	rows, more := cut(page, rows)
	out := make([]ConnectedAccount, len(rows))
	for i, r := range rows {
		out[i] = toConnectedAccount(r)
	}
	return out, more, nil
}

// AccountUpdate says what is to change of what a workspace keeps about an account; nil and zero fields stay.
type AccountUpdate struct {
	DisplayName      string
	CustomerKey      string
	ManageNewDevices *bool
	Capabilities     *[]string
	Metadata         map[string]any // null takes a key away
}

// UpdateConnectedAccount changes what the workspace keeps about an account. One that is given to another customer leaves the
// sessions of the former one, however these have come to it. It fails with NotFound, and with Invalid where the name or
// metadata breaks a rule.
func (s *Service) UpdateConnectedAccount(ctx context.Context, p Principal, id string, u AccountUpdate) (a ConnectedAccount, err error) {
	account, err := uuid.Parse(id)
	if err != nil {
		return a, accountNotFound("connected_account_id", id)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if u.CustomerKey != "" {
			if err := tx.LeaveCustomer(ctx, dbsqlc.LeaveCustomerParams{WorkspaceID: p.WorkspaceID, ConnectedAccountID: account, CustomerKey: u.CustomerKey}); err != nil {
				return err
			}
		}
		r, err := tx.LockWorkspaceAccount(ctx, dbsqlc.LockWorkspaceAccountParams{WorkspaceID: p.WorkspaceID, ConnectedAccountID: account, Scope: p.Reach})
		if store.IsNoRows(err) {
			return accountNotFound("connected_account_id", id)
		}
		if err == nil {
			err = u.apply(&r)
		}
		if err != nil {
			return err
		}
		a = toConnectedAccount(r)
		return tx.DescribeAccount(ctx, dbsqlc.DescribeAccountParams{ConnectedAccountID: r.ConnectedAccountID, DisplayName: r.DisplayName,
			CustomMetadata: r.CustomMetadata, CustomerKey: r.CustomerKey, ManageNewDevices: r.ManageNewDevices, AcceptedCapabilities: r.AcceptedCapabilities})
	})
	if _, ok := asError(err); err != nil && !ok {
		err = fmt.Errorf("change account %s: %w", id, err)
	}
	return a, err
}

// apply makes the changes to what is kept of an account. It fails with Invalid.
func (u AccountUpdate) apply(r *dbsqlc.ConnectedAccount) (err error) {
	if u.DisplayName != "" {
		if err := checkLabel("display_name", u.DisplayName); err != nil {
			return err
		}
		r.DisplayName = u.DisplayName
	}
	if u.CustomerKey != "" {
		r.CustomerKey = &u.CustomerKey
	}
	if u.ManageNewDevices != nil {
		r.ManageNewDevices = *u.ManageNewDevices
	}
	if u.Capabilities != nil {
		r.AcceptedCapabilities = list(u.Capabilities)
	}
	r.CustomMetadata, err = changeMetadata(r.CustomMetadata, u.Metadata)
	return err
}

// DeleteConnectedAccount is DisconnectAccount for one of the workspace. It fails with NotFound.
func (s *Service) DeleteConnectedAccount(ctx context.Context, p Principal, id string) error {
	a, err := s.GetConnectedAccount(ctx, p, id, "")
	if err != nil {
		return err
	}
	err = s.DisconnectAccount(ctx, a.ID)
	if e, ok := asError(err); ok && e.Kind == NotFound { // by somebody else, just now
		return accountNotFound("connected_account_id", id)
	}
	return err
}

// SyncConnectedAccount has an account and all its devices looked at anew. It fails with NotFound.
func (s *Service) SyncConnectedAccount(ctx context.Context, p Principal, id string) error {
	a, err := s.GetConnectedAccount(ctx, p, id, "")
	if err != nil {
		return err
	}
	return s.Resync(ctx, a.ID)
}
