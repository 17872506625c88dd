package access

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// maxLogins is how often it can be tried to log in on one webview: whoever has its URL shall not guess passwords.
const maxLogins = 10

// OpenWebview finds the webview of a URL and its workspace. It fails with NotFound, also for one that has expired
// without a login, or whose workspace is suspended.
func (s *Service) OpenWebview(ctx context.Context, token string) (Webview, Workspace, error) {
	gone := &Error{Kind: NotFound, Type: "connect_webview_not_found", Message: "This link is not good, or no longer."}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < len(uuid.UUID{}) {
		return Webview{}, Workspace{}, gone
	}
	id := uuid.UUID(raw[:len(uuid.UUID{})])
	want, err := s.webviewToken(ctx, id)
	if err != nil {
		return Webview{}, Workspace{}, err
	}
	if !hmac.Equal([]byte(token), []byte(want)) {
		return Webview{}, Workspace{}, gone
	}
	r, err := s.db.OpenConnectWebview(ctx, id)
	switch {
	case store.IsNoRows(err) || (err == nil && WebviewStatus(r.Status) != WebviewAuthorized && !s.opt.Now().Before(r.ExpiresAt)):
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

// Offered are the vendors that can be chosen on a webview.
func (s *Service) Offered(w Webview, in Workspace) (names []string) {
	for _, p := range s.providers(in) {
		if (w.Providers == nil || slices.Contains(*w.Providers, p.Name)) && common(p.Capabilities, w.Capabilities) {
			names = append(names, p.Name)
		}
	}
	return names
}

// tooManyLogins is the Type of the Error of a webview on which it was tried too often.
const tooManyLogins = "too_many_logins"

// IsTooManyLogins says whether err is of BeginLogin, and because it was tried too often.
func IsTooManyLogins(err error) bool {
	e, ok := asError(err)
	return ok && e.Type == tooManyLogins
}

// BeginLogin counts a login on a webview before it is tried. It fails with NotFound for one that has come to its end,
// and with Conflict when it was tried too often.
func (s *Service) BeginLogin(ctx context.Context, webview uuid.UUID) error {
	n, err := s.db.BeginLogin(ctx, dbsqlc.BeginLoginParams{ConnectWebviewID: webview, Now: s.opt.Now().UTC(), Most: maxLogins})
	if err != nil || n == 1 {
		return err
	}
	r, err := s.db.OpenConnectWebview(ctx, webview)
	switch {
	case err == nil && r.LoginAttempts >= maxLogins && WebviewStatus(r.Status) != WebviewAuthorized:
		return &Error{Kind: Conflict, Type: tooManyLogins, Message: "Too many logins were tried with this link."}
	case err == nil || store.IsNoRows(err):
		return webviewNotFound(webview.String())
	}
	return fmt.Errorf("begin the login: %w", err)
}

// FailLogin notes that a login was refused, unless there was one before whose devices are waited for: that one stands. It
// fails with NotFound for a webview that has come to its end.
func (s *Service) FailLogin(ctx context.Context, webview uuid.UUID, provider string) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := lockWebview(ctx, tx, webview)
		if err != nil {
			return err
		}
		if waits, err := waitsForDevices(ctx, tx, r); waits || err != nil {
			return err
		}
		if err := tx.SetLogin(ctx, dbsqlc.SetLoginParams{ConnectWebviewID: webview, Status: string(WebviewFailed), SelectedProvider: &provider}); err != nil {
			return err
		}
		return s.emit(ctx, tx, "connect_webview.login_failed", aboutWebview(r))
	})
	if err != nil {
		return fmt.Errorf("note that a login was refused: %w", err)
	}
	return nil
}

// lockWebview fails with NotFound where nobody can log in any more.
func lockWebview(ctx context.Context, tx store.Tx, id uuid.UUID) (dbsqlc.ConnectWebview, error) {
	r, err := tx.LockConnectWebview(ctx, id)
	if store.IsNoRows(err) || (err == nil && WebviewStatus(r.Status) == WebviewAuthorized) {
		return r, webviewNotFound(id.String())
	}
	return r, err
}

// waitsForDevices says whether a webview has had its login, and waits for the devices of an account that nothing is wrong with.
func waitsForDevices(ctx context.Context, tx store.Tx, r dbsqlc.ConnectWebview) (bool, error) {
	if r.ConnectedAccountID == nil {
		return false, nil
	}
	a, err := tx.GetAccount(ctx, *r.ConnectedAccountID)
	return err == nil && a.DeletedAt == nil && a.ErrorCode == nil, err
}

// admits fails with Conflict where a webview waits for the devices of another account than that: one of the two would be
// connected, and reached by nobody whom the webview is of.
func admits(ctx context.Context, tx store.Tx, r dbsqlc.ConnectWebview, account uuid.UUID) error {
	waits, err := waitsForDevices(ctx, tx, r)
	if err != nil || !waits || *r.ConnectedAccountID == account {
		return err
	}
	return &Error{Kind: Conflict, Type: "connect_webview_has_login",
		Message: "Somebody has logged in with this link already, and it is good for one account. Ask whoever has sent it to you for another link."}
}

func aboutWebview(r dbsqlc.ConnectWebview) about {
	a := about{workspace: r.WorkspaceID}.with("connect_webview_id", r.ConnectWebviewID)
	if r.CustomerKey != nil {
		a = a.with("customer_key", *r.CustomerKey)
	}
	return a
}

// errAgain is of a transaction that somebody else was quicker than.
var errAgain = errors.New("the account was connected or ended meanwhile")

// LogIn connects the account that somebody has logged in to, or connects it anew where the workspace has it: it stays
// what it is then, with its devices, and is reached as n says from now on. What the webview keeps for it is copied.
// It fails with NotFound for a webview that has come to its end, and with Conflict where the account is in another
// workspace, or the devices of another one are waited for.
func (s *Service) LogIn(ctx context.Context, webview uuid.UUID, provider string, n NewAccount) (w Webview, err error) {
	for range 3 {
		w, err = s.logIn(ctx, webview, provider, n)
		if !errors.Is(err, errAgain) && !store.Violates(err, addressIndex) {
			break
		}
	}
	if err != nil {
		return w, fmt.Errorf("connect the account that was logged in to: %w", err)
	}
	return w, nil
}

func (s *Service) logIn(ctx context.Context, webview uuid.UUID, provider string, n NewAccount) (w Webview, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.HoldWorkspace(ctx, n.WorkspaceID); err != nil { // a reset before leaves no webview, one after finds the account
			return err
		}
		if err := s.holdGateway(ctx, tx, n.Adapter, n.Gateway); err != nil {
			return err
		}
		// The account first, as whoever records its devices does.
		a, known, err := s.accountToLogIn(ctx, tx, n)
		if err != nil {
			return err
		}
		r, err := lockWebview(ctx, tx, webview)
		if err != nil {
			return err
		}
		if r.WorkspaceID != n.WorkspaceID {
			return fmt.Errorf("the webview %s is of another workspace", webview)
		}
		if err := admits(ctx, tx, r, a.ConnectedAccountID); err != nil {
			return err
		}
		if known {
			err = s.connectAnew(ctx, tx, a, n)
		} else {
			a.ConnectedAccountID = newID()
			n.SeeOnly = !r.ManageNewDevices
			err = s.insertAccount(ctx, tx, a.ConnectedAccountID, n)
		}
		if err != nil {
			return err
		}
		if err := s.describeAsWebview(ctx, tx, a.ConnectedAccountID, r, !known); err != nil {
			return err
		}
		if !known {
			if err := s.tellConnected(ctx, tx, n.WorkspaceID, a.ConnectedAccountID, &webview); err != nil {
				return err
			}
		}
		told := aboutWebview(r)
		told.account = a.ConnectedAccountID
		if err := s.emit(ctx, tx, "connected_account.successful_login", told); err != nil {
			return err
		}
		status := WebviewPending
		if !r.WaitForDevices {
			status = WebviewAuthorized
			if err := s.emit(ctx, tx, "connect_webview.login_succeeded", told); err != nil {
				return err
			}
		}
		err = tx.SetLogin(ctx, dbsqlc.SetLoginParams{ConnectWebviewID: webview, Status: string(status), SelectedProvider: &provider, ConnectedAccountID: &a.ConnectedAccountID})
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

// accountToLogIn locks the account that n leads to, where there is one. What a gateway says of itself leads to none: anybody
// can say it. It only keeps a gateway that is connected from being another account by another address, of which anybody has
// any number: a name, such as of one's own, leads to whom its owner likes, now or later.
func (s *Service) accountToLogIn(ctx context.Context, tx store.Tx, n NewAccount) (a dbsqlc.ConnectedAccount, known bool, err error) {
	a, err = tx.GetAccountByAddress(ctx, dbsqlc.GetAccountByAddressParams{Adapter: n.Adapter, AddressMac: s.addressMAC(n.Adapter, n.Address)})
	known, elsewhere := err == nil, false
	if store.IsNoRows(err) {
		a, elsewhere, err = s.accountOfGateway(ctx, tx, n.Adapter, n.Gateway, uuid.Nil)
	}
	switch {
	case err == nil && !known && !elsewhere:
		return a, false, nil
	case err != nil:
		return a, false, err
	case a.WorkspaceID != n.WorkspaceID: // whose it is is nobody's business here
		return a, false, &Error{Kind: Conflict, Type: "connected_account_exists", Message: "This account is connected elsewhere on this server. Two would fight over its devices."}
	}
	if n.Unproven { // whoever may open a webview would reach, and change, what somebody else has connected
		return a, false, &Error{Kind: Conflict, Type: "connected_account_exists",
			Message: "This account is connected already, and nothing that was entered proves that it is yours. Whoever runs this server can change how it is reached."}
	}
	if elsewhere {
		return a, false, &Error{Kind: Conflict, Type: "connected_account_exists",
			Message: "This gateway is connected already, at another address. Enter that one. Whoever runs this server can change it."}
	}
	if a, err = tx.LockAccount(ctx, a.ConnectedAccountID); err == nil && a.DeletedAt != nil {
		err = errAgain
	}
	return a, true, err
}

// connectAnew has an account be reached as n says, and all that waits for it tried again.
func (s *Service) connectAnew(ctx context.Context, tx store.Tx, a dbsqlc.ConnectedAccount, n NewAccount) error {
	id := a.ConnectedAccountID
	config, err := s.withKept(a, n.Config)
	if err != nil {
		return err
	}
	gateway := a.GatewayMac
	if n.Gateway != "" {
		gateway = s.gatewayMAC(n.Adapter, n.Gateway)
	}
	_, err = tx.UpdateAccountConfig(ctx, dbsqlc.UpdateAccountConfigParams{ConnectedAccountID: id, DisplayName: a.DisplayName, UserIdentifier: mustJSON(n.user()),
		ConfigSealed: s.keys.Seal(accountPlace(id), config), AddressMac: a.AddressMac, GatewayMac: gateway})
	if err != nil {
		return err
	}
	return s.wakeWhole(ctx, tx, id)
}

// withKept adds to how an account is reached from now on what nobody enters at a login, such as a CA or a time zone.
func (s *Service) withKept(a dbsqlc.ConnectedAccount, anew json.RawMessage) (json.RawMessage, error) {
	was, err := s.toAccount(a)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	if json.Unmarshal(was.Config, &all) != nil || json.Unmarshal(anew, &all) != nil { // the errors may quote a secret
		return nil, fmt.Errorf("read how the account %s is reached", a.ConnectedAccountID)
	}
	return mustJSON(all), nil
}

// describeAsWebview copies what the webview keeps for the account. What the workspace has said since about the devices
// of one that it had before stays.
func (s *Service) describeAsWebview(ctx context.Context, tx store.Tx, account uuid.UUID, w dbsqlc.ConnectWebview, isNew bool) error {
	a, err := tx.GetAccount(ctx, account)
	if err != nil {
		return err
	}
	more, err := changeMetadata(a.CustomMetadata, metadata(w.CustomMetadata))
	switch _, full := asError(err); {
	case err == nil:
		a.CustomMetadata = more
	case !full: // a login does not fail because the account has as much as is kept
		return err
	}
	if w.CustomerKey != nil && (isNew || a.CustomerKey == nil) {
		a.CustomerKey = w.CustomerKey
	}
	if isNew && w.AcceptedCapabilities != nil {
		a.AcceptedCapabilities = w.AcceptedCapabilities
	}
	return tx.DescribeAccount(ctx, dbsqlc.DescribeAccountParams{ConnectedAccountID: account, DisplayName: a.DisplayName, CustomMetadata: a.CustomMetadata,
		CustomerKey: a.CustomerKey, ManageNewDevices: a.ManageNewDevices, AcceptedCapabilities: a.AcceptedCapabilities})
}

// authorizeWaiting tells those who wait for the devices of an account that they are there.
func (s *Service) authorizeWaiting(ctx context.Context, tx store.Tx, a dbsqlc.ConnectedAccount) error {
	webviews, err := tx.AuthorizeWaiting(ctx, &a.ConnectedAccountID)
	if err != nil {
		return err
	}
	for _, id := range webviews {
		err := s.emit(ctx, tx, "connect_webview.login_succeeded", about{workspace: a.WorkspaceID, account: a.ConnectedAccountID}.with("connect_webview_id", id))
		if err != nil {
			return err
		}
	}
	return nil
}

// failWaiting tells those who wait for the devices of an account that it has ended: they can log in again.
func (s *Service) failWaiting(ctx context.Context, tx store.Tx, account uuid.UUID) error {
	webviews, err := tx.FailWaiting(ctx, &account)
	if err != nil {
		return err
	}
	for _, r := range webviews {
		if err := s.emit(ctx, tx, "connect_webview.login_failed", aboutWebview(r)); err != nil {
			return err
		}
	}
	return nil
}

// AccountProblem is what keeps an account from working; empty: nothing does, or it has not been tried yet.
func (s *Service) AccountProblem(ctx context.Context, account uuid.UUID) (string, error) {
	a, err := s.db.GetAccount(ctx, account)
	if err != nil {
		return "", fmt.Errorf("read the account %s: %w", account, err)
	}
	return text(a.ErrorMessage), nil
}
