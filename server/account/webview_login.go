package account

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// maxLogins is the maximum number of login attempts on one webview. It prevents password guessing by holders of
// the URL.
const maxLogins = 10

// OpenWebview returns the webview of a URL and its workspace. It fails with NotFound, also for a webview that
// expired without a login, and in a suspended workspace.
func (s *Service) OpenWebview(ctx context.Context, token string) (Webview, Workspace, error) {
	gone := &domain.Error{
		Kind:    domain.NotFound,
		Type:    "connect_webview_not_found",
		Message: "This link has expired or isn't valid.",
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < len(uuid.UUID{}) {
		return Webview{}, Workspace{}, gone
	}
	id := uuid.UUID(raw[:len(uuid.UUID{})])
	keys, err := s.serverKeys.ServerKeys(ctx, keyrotation.ConnectPages)
	if err != nil {
		return Webview{}, Workspace{}, err
	}
	if !slices.ContainsFunc(keys, func(key []byte) bool {
		return hmac.Equal([]byte(token), []byte(webviewTokenOf(key, id)))
	}) {
		return Webview{}, Workspace{}, gone
	}
	r, err := s.db.OpenConnectWebview(ctx, id)
	switch {
	case store.IsNoRows(err),
		err == nil && WebviewStatus(r.Status) != WebviewAuthorized && !s.opt.Now().Before(r.ExpiresAt):
		return Webview{}, Workspace{}, gone
	case err != nil:
		return Webview{}, Workspace{}, fmt.Errorf("open the webview: %w", err)
	}
	workspace, err := s.GetWorkspace(ctx, r.WorkspaceID)
	if err != nil {
		return Webview{}, Workspace{}, err
	}
	if workspace.IsSuspended {
		return Webview{}, Workspace{}, gone
	}
	w, err := s.toWebview(ctx, r)
	return w, workspace, err
}

// Offered returns the vendors to choose from on a webview.
func (s *Service) Offered(w Webview, in Workspace) (names []string) {
	for _, p := range s.providers(in) {
		if (w.Providers == nil || slices.Contains(*w.Providers, p.Name)) && intersects(p.Capabilities, w.Capabilities) {
			names = append(names, p.Name)
		}
	}
	return names
}

// tooManyLogins is the Type of the error for a webview that is exhausted.
const tooManyLogins = "too_many_logins"

// IsTooManyLogins reports whether err is the error of BeginLogin for an exhausted webview.
func IsTooManyLogins(err error) bool {
	e, ok := domain.AsError(err)
	return ok && e.Type == tooManyLogins
}

// BeginLogin counts a login attempt on a webview before it starts. It fails with NotFound for a webview that
// ended, and with Conflict for an exhausted one.
func (s *Service) BeginLogin(ctx context.Context, webview uuid.UUID) error {
	n, err := s.db.BeginLogin(
		ctx,
		dbsqlc.BeginLoginParams{ConnectWebviewID: webview, Now: s.opt.Now().UTC(), Most: maxLogins},
	)
	if err != nil || n == 1 {
		return err
	}
	r, err := s.db.OpenConnectWebview(ctx, webview)
	switch {
	case err == nil && r.LoginAttempts >= maxLogins && WebviewStatus(r.Status) != WebviewAuthorized:
		return &domain.Error{
			Kind:    domain.Conflict,
			Type:    tooManyLogins,
			Message: "This link has had too many login attempts.",
		}
	case err == nil || store.IsNoRows(err):
		return domain.WebviewNotFound(webview.String())
	}
	return fmt.Errorf("start the login: %w", err)
}

// FailLogin records a rejected login, unless the webview already waits for the devices of an earlier login. It
// fails with NotFound for a webview that ended.
func (s *Service) FailLogin(ctx context.Context, webview uuid.UUID, provider string) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := lockWebview(ctx, tx, webview)
		if err != nil {
			return err
		}
		if waits, err := waitsForDevices(ctx, tx, r); waits || err != nil {
			return err
		}
		if err := tx.SetLogin(
			ctx,
			dbsqlc.SetLoginParams{
				ConnectWebviewID: webview,
				Status:           string(WebviewFailed),
				SelectedProvider: &provider,
			},
		); err != nil {
			return err
		}
		return s.events.Emit(ctx, tx, "connect_webview.login_failed", aboutWebview(r))
	})
	if err != nil {
		return fmt.Errorf("record a rejected login: %w", err)
	}
	return nil
}

// lockWebview fails with NotFound where the webview accepts no login.
func lockWebview(ctx context.Context, tx store.Tx, id uuid.UUID) (dbsqlc.ConnectWebview, error) {
	r, err := tx.LockConnectWebview(ctx, id)
	if store.IsNoRows(err) || (err == nil && WebviewStatus(r.Status) == WebviewAuthorized) {
		return r, domain.WebviewNotFound(id.String())
	}
	return r, err
}

// waitsForDevices reports whether a webview had a login and waits for the devices of an account that works.
func waitsForDevices(ctx context.Context, tx store.Tx, r dbsqlc.ConnectWebview) (bool, error) {
	if r.ConnectedAccountID == nil {
		return false, nil
	}
	a, err := tx.GetAccount(ctx, *r.ConnectedAccountID)
	return err == nil && a.DeletedAt == nil && a.ErrorCode == nil, err
}

// checkLoginAllowed fails with Conflict where a webview waits for the devices of another account. Otherwise one
// of the two accounts would be connected outside of the webview's scope.
func checkLoginAllowed(ctx context.Context, tx store.Tx, r dbsqlc.ConnectWebview, account uuid.UUID) error {
	waits, err := waitsForDevices(ctx, tx, r)
	if err != nil || !waits || *r.ConnectedAccountID == account {
		return err
	}
	return &domain.Error{
		Kind: domain.Conflict,
		Type: "connect_webview_has_login",
		Message: "This link was already used for another account, and it works for one only. Ask its sender " +
			"for a new link.",
	}
}

func aboutWebview(r dbsqlc.ConnectWebview) event.About {
	a := event.About{Workspace: r.WorkspaceID}.With("connect_webview_id", r.ConnectWebviewID)
	if r.CustomerKey != nil {
		a = a.With("customer_key", *r.CustomerKey)
	}
	return a
}

// errConcurrentLogin is the error of a transaction that lost a race. LogIn retries it.
var errConcurrentLogin = errors.New("the account was connected or deleted concurrently")

// LogIn connects the account of a login. An account that the workspace already has keeps its identity and
// devices and is reached as n says from now on. The account receives the webview's customer and metadata. It
// fails with NotFound for a webview that ended, and with Conflict where the account belongs to another
// workspace, or the webview waits for the devices of another account.
func (s *Service) LogIn(ctx context.Context, webview uuid.UUID, provider string, n NewAccount) (w Webview, err error) {
	for range 3 {
		w, err = s.logIn(ctx, webview, provider, n)
		if !errors.Is(err, errConcurrentLogin) && !store.Violates(err, addressIndex) {
			break
		}
	}
	if err != nil {
		return w, fmt.Errorf("connect the account of the login: %w", err)
	}
	return w, nil
}

func (s *Service) logIn(ctx context.Context, webview uuid.UUID, provider string, n NewAccount) (w Webview, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.HoldWorkspace(
			ctx,
			n.WorkspaceID,
		); err != nil { // an earlier reset leaves no webview, a later one finds the account
			return err
		}
		if err := s.holdGateway(ctx, tx, n.Adapter, n.Gateway); err != nil {
			return err
		}
		// Lock order: the account first, as in the recording of its devices.
		a, known, err := s.accountToLogIn(ctx, tx, n)
		if err != nil {
			return err
		}
		r, err := lockWebview(ctx, tx, webview)
		if err != nil {
			return err
		}
		if r.WorkspaceID != n.WorkspaceID {
			return fmt.Errorf("the webview %s belongs to another workspace", webview)
		}
		if err := checkLoginAllowed(ctx, tx, r, a.ConnectedAccountID); err != nil {
			return err
		}
		if known {
			err = s.reconnect(ctx, tx, a, n)
		} else {
			a.ConnectedAccountID = domain.NewID()
			n.Unmanaged = n.Unmanaged || !r.ManageNewDevices
			err = s.insertAccount(ctx, tx, a.ConnectedAccountID, n)
		}
		if err != nil {
			return err
		}
		if err := s.describeAsWebview(ctx, tx, a.ConnectedAccountID, r, !known); err != nil {
			return err
		}
		if !known {
			if err := s.emitConnected(ctx, tx, n.WorkspaceID, a.ConnectedAccountID, &webview); err != nil {
				return err
			}
		}
		about := aboutWebview(r)
		about.Account = a.ConnectedAccountID
		if err := s.events.Emit(ctx, tx, "connected_account.successful_login", about); err != nil {
			return err
		}
		status := WebviewPending
		if !r.WaitForDevices {
			status = WebviewAuthorized
			if err := s.events.Emit(ctx, tx, "connect_webview.login_succeeded", about); err != nil {
				return err
			}
		}
		err = tx.SetLogin(ctx, dbsqlc.SetLoginParams{
			ConnectWebviewID:   webview,
			Status:             string(status),
			SelectedProvider:   &provider,
			ConnectedAccountID: &a.ConnectedAccountID,
		})
		if err == nil {
			err = tx.DropPendingLogins(ctx, webview)
		}
		if err == nil && r.CreatedBySession != nil {
			err = dropSurplus(ctx, tx, a.ConnectedAccountID, r)
		}
		if err != nil {
			return err
		}
		if r, err = tx.LockConnectWebview(ctx, webview); err != nil {
			return err
		}
		w, err = s.toWebview(ctx, r)
		return err
	})
	return w, err
}

// accountToLogIn locks the account at the address of n, if there is one. What a gateway reports about itself
// never selects an account, because anyone can claim it. It only prevents a second account for a connected
// gateway at another address: a gateway has many addresses, and an owner can point a DNS name anywhere at any
// time.
func (s *Service) accountToLogIn(
	ctx context.Context,
	tx store.Tx,
	n NewAccount,
) (a dbsqlc.ConnectedAccount, known bool, err error) {
	a, err = tx.GetAccountByAddress(
		ctx,
		dbsqlc.GetAccountByAddressParams{Adapter: n.Adapter, AddressMac: s.addressMAC(n.Adapter, n.Address)},
	)
	known, elsewhere := err == nil, false
	if store.IsNoRows(err) {
		a, elsewhere, err = s.accountOfGateway(ctx, tx, n.Adapter, n.Gateway, uuid.Nil)
	}
	switch {
	case err == nil && !known && !elsewhere:
		return a, false, nil
	case err != nil:
		return a, false, err
	case a.WorkspaceID != n.WorkspaceID: // the message must not reveal the owner
		return a, false, &domain.Error{
			Kind:    domain.Conflict,
			Type:    "connected_account_exists",
			Message: "This account is connected elsewhere on this server. Two would fight over its devices.",
		}
	}
	if n.Unverified { // otherwise any user of a webview could see and change another's account
		return a, false, &domain.Error{
			Kind: domain.Conflict,
			Type: "connected_account_exists",
			Message: "This account is already connected, and nothing that you entered proves that it is " +
				"yours. The operator of this server can change its settings.",
		}
	}
	if elsewhere {
		return a, false, &domain.Error{
			Kind: domain.Conflict,
			Type: "connected_account_exists",
			Message: "This gateway is already connected, at another address. Enter that address. The operator " +
				"of this server can change it.",
		}
	}
	if a, err = tx.LockAccount(ctx, a.ConnectedAccountID); err == nil && a.DeletedAt != nil {
		err = errConcurrentLogin
	}
	return a, true, err
}

// reconnect changes how an account is reached, and wakes the account and all its devices.
func (s *Service) reconnect(ctx context.Context, tx store.Tx, a dbsqlc.ConnectedAccount, n NewAccount) error {
	id := a.ConnectedAccountID
	config, err := s.mergeConfig(a, n.Config)
	if err != nil {
		return err
	}
	gateway := a.GatewayMac
	if n.Gateway != "" {
		gateway = s.gatewayMAC(n.Adapter, n.Gateway)
	}
	_, err = tx.UpdateAccountConfig(ctx, dbsqlc.UpdateAccountConfigParams{
		ConnectedAccountID: id,
		DisplayName:        a.DisplayName,
		UserIdentifier:     domain.MustJSON(n.user()),
		ConfigSealed:       s.keys.Seal(accountPlace(id), config),
		AddressMac:         a.AddressMac,
		GatewayMac:         gateway,
	})
	if err == nil {
		err = s.putSecrets(ctx, tx, id, n.Secrets)
	}
	if err != nil {
		return err
	}
	return s.wakeAccountAndDevices(ctx, tx, id)
}

// mergeConfig adds the settings that no login asks for, such as a CA or a time zone, to a new configuration.
func (s *Service) mergeConfig(a dbsqlc.ConnectedAccount, fresh json.RawMessage) (json.RawMessage, error) {
	was, err := s.ToAccount(a)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	if json.Unmarshal(was.Config, &all) != nil || json.Unmarshal(fresh, &all) != nil { // the errors may quote a secret
		return nil, fmt.Errorf("read the configuration of account %s", a.ConnectedAccountID)
	}
	return domain.MustJSON(all), nil
}

// describeAsWebview copies the webview's customer, kinds, and metadata to the account. On an existing account
// the settings of the workspace take precedence.
func (s *Service) describeAsWebview(
	ctx context.Context,
	tx store.Tx,
	account uuid.UUID,
	w dbsqlc.ConnectWebview,
	isNew bool,
) error {
	a, err := tx.GetAccount(ctx, account)
	if err != nil {
		return err
	}
	more, err := domain.ApplyMetadata(a.CustomMetadata, domain.ReadMetadata(w.CustomMetadata))
	switch _, full := domain.AsError(err); {
	case err == nil:
		a.CustomMetadata = more
	case !full: // a full metadata map must not fail the login
		return err
	}
	if w.CustomerKey != nil && (isNew || a.CustomerKey == nil) {
		a.CustomerKey = w.CustomerKey
	}
	if isNew && w.AcceptedCapabilities != nil {
		a.AcceptedCapabilities = w.AcceptedCapabilities
	}
	return tx.DescribeAccount(ctx, dbsqlc.DescribeAccountParams{
		ConnectedAccountID:   account,
		DisplayName:          a.DisplayName,
		CustomMetadata:       a.CustomMetadata,
		CustomerKey:          a.CustomerKey,
		ManageNewDevices:     a.ManageNewDevices,
		AcceptedCapabilities: a.AcceptedCapabilities,
	})
}

// authorizeWaiting authorizes the webviews that wait for the devices of an account.
func (s *Service) authorizeWaiting(ctx context.Context, tx store.Tx, a dbsqlc.ConnectedAccount) error {
	webviews, err := tx.AuthorizeWaiting(ctx, &a.ConnectedAccountID)
	if err != nil {
		return err
	}
	for _, id := range webviews {
		err := s.events.Emit(
			ctx,
			tx,
			"connect_webview.login_succeeded",
			event.About{Workspace: a.WorkspaceID, Account: a.ConnectedAccountID}.With("connect_webview_id", id),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// failWaiting fails the webviews that wait for the devices of a deleted account. They accept another login.
func (s *Service) failWaiting(ctx context.Context, tx store.Tx, account uuid.UUID) error {
	webviews, err := tx.FailWaiting(ctx, &account)
	if err != nil {
		return err
	}
	for _, r := range webviews {
		if err := s.events.Emit(ctx, tx, "connect_webview.login_failed", aboutWebview(r)); err != nil {
			return err
		}
	}
	return nil
}

// AccountProblem returns the error message of an account. It is empty for an account that works or was not
// tried yet.
func (s *Service) AccountProblem(ctx context.Context, account uuid.UUID) (string, error) {
	a, err := s.db.GetAccount(ctx, account)
	if err != nil {
		return "", fmt.Errorf("read the account %s: %w", account, err)
	}
	return domain.Value(a.ErrorMessage), nil
}
