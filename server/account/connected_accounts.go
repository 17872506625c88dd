package account

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ConnectedAccount is an account as its workspace sees it, without its credentials.
type ConnectedAccount struct {
	ID               uuid.UUID
	Adapter          string
	Provider         string // as for NewAccount
	DisplayName      string
	CustomerKey      string
	User             UserIdentifier
	ManageNewDevices bool
	Capabilities     []string // the kinds of devices that are taken from it
	Metadata         map[string]any
	Errors           []domain.Problem
	Warnings         []domain.Problem // of its adapter
	CreatedAt        time.Time
}

// UserIdentifier is the login name, or the gateway's address. Nothing in it is secret.
type UserIdentifier struct {
	APIURL   string `json:"api_url,omitempty"`
	Email    string `json:"email,omitempty"`
	Username string `json:"username,omitempty"`
}

func toConnectedAccount(r dbsqlc.ConnectedAccount) ConnectedAccount {
	a := ConnectedAccount{
		ID:               r.ConnectedAccountID,
		Adapter:          r.Adapter,
		Provider:         r.Provider,
		DisplayName:      r.DisplayName,
		CustomerKey:      domain.Value(r.CustomerKey),
		ManageNewDevices: r.ManageNewDevices,
		Capabilities:     r.AcceptedCapabilities,
		Metadata:         domain.ReadMetadata(r.CustomMetadata),
		Errors:           accountErrors(r),
		CreatedAt:        r.CreatedAt,
	}
	_ = json.Unmarshal(r.UserIdentifier, &a.User) // written by this package
	return a
}

func accountErrors(r dbsqlc.ConnectedAccount) []domain.Problem {
	if r.ErrorCode == nil {
		return nil
	}
	return []domain.Problem{{
		Code:    *r.ErrorCode,
		Message: domain.Value(r.ErrorMessage),
		Scope:   domain.OfAccount,
		At:      domain.Value(r.ErrorAt),
	}}
}

// accountErrorOf returns the error of an account in the form that its devices store, or nil if it works.
func accountErrorOf(errs []domain.Problem) []byte {
	if len(errs) == 0 {
		return nil
	}
	return domain.MustJSON(accountTrouble{Code: errs[0].Code, Message: errs[0].Message, At: errs[0].At})
}

// accountTrouble is the stored form of an account's error.
type accountTrouble struct {
	Code    string    `json:"code"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// ReadAccountError is the inverse of accountErrorOf.
func ReadAccountError(kept []byte) []domain.Problem {
	if kept == nil {
		return nil
	}
	var t accountTrouble
	if json.Unmarshal(kept, &t) != nil { // written by this package
		return nil
	}
	return []domain.Problem{{
		Code:    t.Code,
		Message: t.Message,
		At:      t.At,
		Scope:   domain.OfAccount,
	}}
}

// GetConnectedAccount reads an account by its identifier or, if that is empty, the oldest account with an email
// address. It fails with Invalid unless exactly one is given, and with NotFound.
func (s *Service) GetConnectedAccount(
	ctx context.Context,
	p domain.Principal,
	id, email string,
) (ConnectedAccount, error) {
	if (id == "") == (email == "") {
		return ConnectedAccount{}, domain.Invalidf("", "Must specify either connected_account_id or email")
	}
	var r dbsqlc.ConnectedAccount
	var err error
	missing := domain.AccountNotFound("email", email)
	if id != "" {
		missing = domain.AccountNotFound("connected_account_id", id)
		parsed, bad := uuid.Parse(id)
		if bad != nil {
			return ConnectedAccount{}, missing
		}
		r, err = s.db.GetWorkspaceAccount(
			ctx,
			dbsqlc.GetWorkspaceAccountParams{WorkspaceID: p.WorkspaceID, ConnectedAccountID: parsed},
		)
		if err == nil && !p.CanSee(r.ConnectedAccountID) {
			return ConnectedAccount{}, missing
		}
	} else {
		r, err = s.db.GetAccountByEmail(
			ctx,
			dbsqlc.GetAccountByEmailParams{WorkspaceID: p.WorkspaceID, Email: email, Scope: p.Scope},
		)
	}
	switch {
	case store.IsNoRows(err):
		return ConnectedAccount{}, missing
	case err != nil:
		return ConnectedAccount{}, fmt.Errorf("read the account: %w", err)
	}
	out := []ConnectedAccount{toConnectedAccount(r)}
	return out[0], s.addWarnings(ctx, s.db.Queries, p.WorkspaceID, out)
}

// HasAccountOf reports whether a workspace has a connected account of an adapter whose login name is one of users.
func (s *Service) HasAccountOf(ctx context.Context, workspace uuid.UUID, adapter string, users []string) (bool, error) {
	found, err := s.db.AnyAccountOfUser(ctx, dbsqlc.AnyAccountOfUserParams{
		WorkspaceID: workspace,
		Adapter:     adapter,
		Usernames:   users,
	})
	if err != nil {
		return false, fmt.Errorf("look for an account by its login name: %w", err)
	}
	return found, nil
}

// Filter is a set of conditions that must all hold. Zero values are no condition.
type Filter struct {
	CustomerKey string
	Metadata    map[string]any
	Search      string // in its name and its user identifier
	IDs         []uuid.UUID
	Nothing     bool // matches no account
}

// ListConnectedAccounts lists accounts, oldest first, and reports whether more follow the page.
func (s *Service) ListConnectedAccounts(
	ctx context.Context,
	p domain.Principal,
	f Filter,
	page domain.Page,
) ([]ConnectedAccount, bool, error) {
	if f.Nothing {
		return nil, false, nil
	}
	arg := dbsqlc.FindAccountsParams{
		WorkspaceID: p.WorkspaceID,
		AfterAt:     page.After.At,
		AfterID:     page.After.ID,
		MaxRows:     page.Rows(),
		CustomerKey: domain.NonEmpty(f.CustomerKey),
		Pattern:     store.SearchPattern(f.Search),
		Scope:       p.Scope,
		Ids:         f.IDs,
	}
	var err error
	if arg.Metadata, arg.WithoutMetadata, err = domain.MetadataConditions(f.Metadata); err != nil {
		return nil, false, err
	}
	rows, err := s.db.UnpreparedQueries.FindAccounts(ctx, arg)
	if err != nil {
		return nil, false, fmt.Errorf("list the accounts: %w", err)
	}
	rows, more := domain.Cut(page, rows)
	out := make([]ConnectedAccount, len(rows))
	for i, r := range rows {
		out[i] = toConnectedAccount(r)
	}
	return out, more, s.addWarnings(ctx, s.db.Queries, p.WorkspaceID, out)
}

// Update is a change of what a workspace stores about an account. nil and zero fields stay.
type Update struct {
	DisplayName      string
	CustomerKey      string
	ManageNewDevices *bool
	Capabilities     *[]string
	Metadata         map[string]any // null deletes a key
}

// UpdateConnectedAccount changes what the workspace stores about an account. An account that moves to another
// customer leaves the scope of the former customer's sessions. It fails with NotFound, with Invalid where the
// name or the metadata breaks a rule, and with Forbidden where new devices must stay read-only.
func (s *Service) UpdateConnectedAccount(
	ctx context.Context,
	p domain.Principal,
	id string,
	u Update,
) (a ConnectedAccount, err error) {
	account, err := uuid.Parse(id)
	if err != nil {
		return a, domain.AccountNotFound("connected_account_id", id)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if u.CustomerKey != "" {
			if err := tx.RevokeOtherCustomers(
				ctx,
				dbsqlc.RevokeOtherCustomersParams{
					WorkspaceID:        p.WorkspaceID,
					ConnectedAccountID: account,
					CustomerKey:        u.CustomerKey,
				},
			); err != nil {
				return err
			}
		}
		r, err := tx.LockWorkspaceAccount(
			ctx,
			dbsqlc.LockWorkspaceAccountParams{WorkspaceID: p.WorkspaceID, ConnectedAccountID: account, Scope: p.Scope},
		)
		if store.IsNoRows(err) {
			return domain.AccountNotFound("connected_account_id", id)
		}
		if err == nil && domain.Value(u.ManageNewDevices) && !r.ManageNewDevices {
			err = s.CheckWritesAllowed(r)
		}
		if err == nil {
			err = u.apply(&r)
		}
		if err != nil {
			return err
		}
		described := []ConnectedAccount{toConnectedAccount(r)}
		if err := s.addWarnings(ctx, tx.Queries, p.WorkspaceID, described); err != nil {
			return err
		}
		a = described[0]
		tx.Concerns(p.WorkspaceID)
		return tx.DescribeAccount(ctx, dbsqlc.DescribeAccountParams{
			ConnectedAccountID:   r.ConnectedAccountID,
			DisplayName:          r.DisplayName,
			CustomMetadata:       r.CustomMetadata,
			CustomerKey:          r.CustomerKey,
			ManageNewDevices:     r.ManageNewDevices,
			AcceptedCapabilities: r.AcceptedCapabilities,
		})
	})
	if _, ok := domain.AsError(err); err != nil && !ok {
		err = fmt.Errorf("change account %s: %w", id, err)
	}
	return a, err
}

// apply applies the changes to the row. It fails with Invalid.
func (u Update) apply(r *dbsqlc.ConnectedAccount) (err error) {
	if u.DisplayName != "" {
		if err := domain.CheckLabel("display_name", u.DisplayName); err != nil {
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
		r.AcceptedCapabilities = domain.ListOf(u.Capabilities)
	}
	r.CustomMetadata, err = domain.ApplyMetadata(r.CustomMetadata, u.Metadata)
	return err
}

// DeleteConnectedAccount is DisconnectAccount for an account of the workspace. It fails with NotFound.
func (s *Service) DeleteConnectedAccount(ctx context.Context, p domain.Principal, id string) error {
	a, err := s.GetConnectedAccount(ctx, p, id, "")
	if err != nil {
		return err
	}
	err = s.DisconnectAccount(ctx, a.ID)
	if e, ok := domain.AsError(err); ok && e.Kind == domain.NotFound { // a concurrent request deleted it
		return domain.AccountNotFound("connected_account_id", id)
	}
	return err
}

// SyncConnectedAccount makes the server read an account and all its devices again. It fails with NotFound.
func (s *Service) SyncConnectedAccount(ctx context.Context, p domain.Principal, id string) error {
	a, err := s.GetConnectedAccount(ctx, p, id, "")
	if err != nil {
		return err
	}
	return s.Resync(ctx, a.ID)
}
