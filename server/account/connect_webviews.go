package account

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// webviewLifetime is how long a webview accepts a login.
const webviewLifetime = 7 * 24 * time.Hour

// WebviewStatus is the state of the login on a webview.
type WebviewStatus string

// Webview states.
const (
	WebviewPending    WebviewStatus = "pending"
	WebviewFailed     WebviewStatus = "failed" // the last login was rejected; another attempt may succeed
	WebviewAuthorized WebviewStatus = "authorized"
)

// Webview is a page on which a person logs in to a vendor account, once.
type Webview struct {
	ID               uuid.UUID
	WorkspaceID      uuid.UUID
	Token            string    // part of its URL; possession allows the login
	Providers        *[]string // the vendors to choose from; nil: any
	Capabilities     []string  // the kinds of devices that are taken from the account
	ManageNewDevices bool
	WaitForDevices   bool   // authorized only when the account's devices have appeared
	RedirectURL      string // where the browser goes after the login, if set
	FailureURL       string // where the browser goes after a failed login, if set
	CustomerKey      string
	Metadata         map[string]any
	Status           WebviewStatus
	SelectedProvider *string
	AccountID        *uuid.UUID
	CreatedAt        time.Time
	ExpiresAt        time.Time
	AuthorizedAt     *time.Time
	Exhausted        bool // no login succeeded within the maximum number of attempts
}

// Provider is a vendor that people can log in to.
type Provider struct {
	Name         string // device_provider_name of the API
	Categories   []string
	Capabilities []string
}

// defaultCapabilities are the kinds of devices that are taken from an account if its webview names neither
// kinds nor vendors.
var defaultCapabilities = []string{"lock"}

// webviewToken returns the token in a webview's URL: its identifier with a MAC of this server.
func (s *Service) webviewToken(ctx context.Context, id uuid.UUID) (string, error) {
	key, err := s.serverKeys.ServerKey(ctx, keyrotation.ConnectPages)
	if err != nil {
		return "", err
	}
	return webviewTokenOf(key, id), nil
}

func webviewTokenOf(key []byte, id uuid.UUID) string {
	h := hmac.New(sha256.New, key)
	h.Write(id[:])
	return base64.RawURLEncoding.EncodeToString(append(id[:], h.Sum(nil)[:24]...))
}

func (s *Service) toWebview(ctx context.Context, r dbsqlc.ConnectWebview) (Webview, error) {
	token, err := s.webviewToken(ctx, r.ConnectWebviewID)
	w := Webview{
		ID:               r.ConnectWebviewID,
		WorkspaceID:      r.WorkspaceID,
		Token:            token,
		Capabilities:     r.AcceptedCapabilities,
		ManageNewDevices: r.ManageNewDevices,
		WaitForDevices:   r.WaitForDevices,
		RedirectURL:      domain.Value(r.RedirectUrl),
		FailureURL:       domain.Value(r.FailureUrl),
		CustomerKey:      domain.Value(r.CustomerKey),
		Metadata:         domain.ReadMetadata(r.CustomMetadata),
		Status:           WebviewStatus(r.Status),
		SelectedProvider: r.SelectedProvider,
		AccountID:        r.ConnectedAccountID,
		CreatedAt:        r.CreatedAt,
		ExpiresAt:        r.ExpiresAt,
		AuthorizedAt:     r.AuthorizedAt,
	}
	w.Exhausted = r.LoginAttempts >= maxLogins && w.Status != WebviewAuthorized
	if r.AcceptedProviders != nil {
		w.Providers = &r.AcceptedProviders
	}
	if w.Capabilities == nil {
		w.Capabilities = defaultCapabilities
	}
	return w, err
}

// NewWebview is a request for a webview. Zero fields are no condition.
type NewWebview struct {
	Providers        *[]string
	Excluded         []string
	Category         string
	Capabilities     *[]string
	ManageNewDevices bool
	WaitForDevices   bool
	SelectionMode    string
	RedirectURL      string
	FailureURL       string
	CustomerKey      string
	Metadata         map[string]any
}

// CreateWebview creates a webview. It fails with Invalid, also where no vendor would be left to choose. A client session
// has at most auth.MaxSessionWebviews: the oldest unused one makes room for the next. It fails with TooMany where the
// workspace has the maximum of webviews of sessions that reach nothing.
func (s *Service) CreateWebview(ctx context.Context, p domain.Principal, n NewWebview) (Webview, error) {
	var selection error
	if n.SelectionMode != "" && n.SelectionMode != "none" {
		selection = domain.Invalidf(
			"device_selection_mode",
			"Devices cannot be selected on the page: all devices of the account appear. Leave it out, or use none",
		)
	}
	data, err := domain.ApplyMetadata([]byte("{}"), n.Metadata)
	if err := domain.All(
		selection,
		webURL("custom_redirect_url", n.RedirectURL),
		webURL("custom_redirect_failure_url", n.FailureURL),
		err,
		domain.CheckSessionMetadata(p, nil, data),
	); err != nil {
		return Webview{}, err
	}
	if p.Kind == domain.EndUser { // its accounts belong to its customer only
		if n.CustomerKey != "" && n.CustomerKey != p.Customer {
			return Webview{}, domain.Invalidf(
				"customer_key",
				"A client session creates webviews for its own customer only. Leave it out",
			)
		}
		n.CustomerKey = p.Customer
	}
	workspace, err := s.GetWorkspace(ctx, p.WorkspaceID)
	if err != nil {
		return Webview{}, err
	}
	providers, capabilities, err := s.resolveProviders(workspace, n)
	if err != nil {
		return Webview{}, err
	}
	var r dbsqlc.ConnectWebview
	var session *uuid.UUID
	if p.Kind == domain.EndUser {
		session = &p.CredentialID
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if session != nil {
			if err := s.lockCreator(ctx, tx, p); err != nil {
				return err
			}
		}
		r, err = tx.InsertConnectWebview(ctx, dbsqlc.InsertConnectWebviewParams{
			ConnectWebviewID:     domain.NewID(),
			WorkspaceID:          p.WorkspaceID,
			AcceptedProviders:    providers,
			AcceptedCapabilities: capabilities,
			ManageNewDevices:     n.ManageNewDevices,
			WaitForDevices:       n.WaitForDevices,
			RedirectUrl:          domain.NonEmpty(n.RedirectURL),
			FailureUrl:           domain.NonEmpty(n.FailureURL),
			CustomMetadata:       data,
			CustomerKey:          domain.NonEmpty(n.CustomerKey),
			ExpiresAt:            s.opt.Now().Add(webviewLifetime).UTC(),
			CreatedBySession:     session,
			IsUnclaimed:          p.Unclaimed,
		})
		if err != nil || session == nil {
			return err
		}
		if err := tx.GrantWebviewsToClientSession(
			ctx,
			dbsqlc.GrantWebviewsToClientSessionParams{
				ClientSessionID: p.CredentialID,
				Webviews:        []uuid.UUID{r.ConnectWebviewID},
			},
		); err != nil {
			return err
		}
		return tx.KeepWebviewsOfIdentity(ctx, p.CredentialID)
	})
	if err != nil {
		return Webview{}, domain.Wrap(err, "create the webview")
	}
	return s.toWebview(ctx, r)
}

// lockCreator locks the session that creates a webview, and makes room for the webview. It fails with NotFound where the
// session was deleted, and like makeRoom.
func (s *Service) lockCreator(ctx context.Context, tx store.Tx, p domain.Principal) error {
	if _, err := tx.LockClientSession(ctx, p.CredentialID); store.IsNoRows(err) {
		return auth.SessionNotFound("client_session_id", p.CredentialID.String())
	} else if err != nil {
		return err
	}
	return s.makeRoom(ctx, tx, p)
}

// resolveProviders returns the vendors that n selects (nil: any) and the kinds of devices that are taken from
// their accounts (nil: defaultCapabilities). Where n does not name kinds, the selected vendors determine them.
// It fails with Invalid where no vendor is left.
func (s *Service) resolveProviders(workspace Workspace, n NewWebview) (chosen, capabilities []string, err error) {
	chosen, capabilities = []string{}, domain.ListOf(n.Capabilities)
	named := n.Providers != nil || n.Category != ""
	if n.Capabilities == nil && !named {
		n.Capabilities = &defaultCapabilities
	}
	var there, has []string
	for _, p := range s.providers(workspace) {
		there = append(there, p.Name)
		wanted := (n.Providers == nil || slices.Contains(*n.Providers, p.Name)) &&
			!slices.Contains(n.Excluded, p.Name) &&
			(n.Category == "" || slices.Contains(p.Categories, n.Category))
		if wanted && (n.Capabilities == nil || intersects(p.Capabilities, *n.Capabilities)) {
			chosen, has = append(chosen, p.Name), append(has, p.Capabilities...)
		}
	}
	slices.Sort(has)
	if has = slices.Compact(has); n.Capabilities == nil && !slices.Equal(has, defaultCapabilities) {
		capabilities = has
	}
	switch {
	case len(chosen) == 0:
		field := "accepted_providers"
		if n.Providers == nil && capabilities != nil {
			field = "accepted_capabilities"
		} else if n.Providers == nil && n.Category != "" {
			field = "provider_category"
		} else if n.Providers == nil && len(n.Excluded) > 0 {
			field = "excluded_providers"
		} else if n.Providers == nil {
			field = ""
		}
		message := "No vendor is left to choose. In this workspace people can log in to: " +
			cmp.Or(strings.Join(there, ", "), "none")
		if !workspace.IsSandbox {
			message += ". An operator enables gateways with --connect-gateways, and some vendors with --vendor-client"
		}
		return nil, nil, domain.Invalidf(field, "%s", message)
	case !named && len(n.Excluded) == 0:
		return nil, capabilities, nil
	}
	return chosen, capabilities, nil
}

func (s *Service) providers(w Workspace) []Provider {
	if s.opt.Providers == nil {
		return nil
	}
	return s.opt.Providers(w)
}

// intersects reports whether a and b have an element in common.
func intersects(a, b []string) bool {
	return slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
}

// hostName rejects characters with a meaning in headers. No host in DNS has these.
var hostName = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]+$`)

// webURL checks a URL that browsers are sent to. An empty one passes.
func webURL(field, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || !hostName.MatchString(u.Host) ||
		u.User != nil {
		return domain.Invalidf(field, "It must begin with https:// or http:// and a host, without a user")
	}
	return nil
}

// GetWebview reads a webview. It fails with NotFound.
func (s *Service) GetWebview(ctx context.Context, p domain.Principal, id string) (Webview, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return Webview{}, domain.WebviewNotFound(id)
	}
	r, err := s.db.GetConnectWebview(
		ctx,
		dbsqlc.GetConnectWebviewParams{WorkspaceID: p.WorkspaceID, ConnectWebviewID: parsed},
	)
	switch {
	case store.IsNoRows(err):
		return Webview{}, domain.WebviewNotFound(id)
	case err != nil:
		return Webview{}, fmt.Errorf("read the webview: %w", err)
	}
	if p.Kind == domain.EndUser {
		sees, err := s.db.SeesWebview(
			ctx,
			dbsqlc.SeesWebviewParams{ClientSessionID: p.CredentialID, ConnectWebviewID: parsed},
		)
		if err != nil {
			return Webview{}, fmt.Errorf("read the webview: %w", err)
		}
		if !sees {
			return Webview{}, domain.WebviewNotFound(id)
		}
	}
	return s.toWebview(ctx, r)
}

// WebviewFilter is a set of conditions that must all hold. Zero values are no condition.
type WebviewFilter struct {
	CustomerKey string
	Metadata    map[string]any
	Search      string // in its identifier, vendors, customer, and metadata
	UserKey     string // of an end user, to list what that session can see
}

// ListWebviews lists webviews, oldest first, and reports whether more follow the page.
func (s *Service) ListWebviews(
	ctx context.Context,
	p domain.Principal,
	f WebviewFilter,
	page domain.Page,
) ([]Webview, bool, error) {
	session, err := s.sessionSeeing(ctx, p, f.UserKey)
	if e, ok := domain.AsError(err); ok && e.Kind == domain.NotFound {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	arg := dbsqlc.FindConnectWebviewsParams{
		WorkspaceID: p.WorkspaceID,
		AfterAt:     page.After.At,
		AfterID:     page.After.ID,
		MaxRows:     page.Rows(),
		CustomerKey: domain.NonEmpty(f.CustomerKey),
		Pattern:     store.SearchPattern(f.Search),
		Session:     session,
	}
	if arg.Metadata, arg.WithoutMetadata, err = domain.MetadataConditions(f.Metadata); err != nil {
		return nil, false, err
	}
	rows, err := s.db.UnpreparedQueries.FindConnectWebviews(ctx, arg)
	if err != nil {
		return nil, false, fmt.Errorf("list the webviews: %w", err)
	}
	rows, more := domain.Cut(page, rows)
	out := make([]Webview, len(rows))
	for i, r := range rows {
		if out[i], err = s.toWebview(ctx, r); err != nil {
			return nil, false, err
		}
	}
	return out, more, nil
}

// sessionSeeing returns the client session whose view applies: the caller's, or that of an end user. nil means
// the whole workspace. It fails with NotFound where the end user has none.
func (s *Service) sessionSeeing(ctx context.Context, p domain.Principal, key string) (*uuid.UUID, error) {
	if key != "" {
		c, err := s.auth.GetClientSession(ctx, p, "", key)
		return &c.ID, err
	}
	if p.Kind == domain.EndUser {
		return &p.CredentialID, nil
	}
	return nil, nil
}

// DeleteWebview deletes a webview immediately. An account that was connected with it stays. It fails with
// NotFound.
func (s *Service) DeleteWebview(ctx context.Context, p domain.Principal, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return domain.WebviewNotFound(id)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		_, err := tx.LockWorkspaceWebview(
			ctx,
			dbsqlc.LockWorkspaceWebviewParams{WorkspaceID: p.WorkspaceID, ConnectWebviewID: parsed},
		)
		if store.IsNoRows(err) {
			return domain.WebviewNotFound(id)
		}
		if err != nil {
			return err
		}
		return deleteWebview(ctx, tx, p.WorkspaceID, parsed)
	})
	return domain.Wrap(err, "delete the webview")
}

// deleteWebview deletes a locked webview. Identities and sessions keep their access to its account.
func deleteWebview(ctx context.Context, tx store.Tx, workspace, id uuid.UUID) error {
	if _, err := tx.LockIdentitiesOfWebview(ctx, id); err != nil {
		return err
	}
	if _, err := tx.LockSessionsOfWebview(ctx, id); err != nil {
		return err
	}
	return tx.DeleteConnectWebview(
		ctx,
		dbsqlc.DeleteConnectWebviewParams{WorkspaceID: workspace, ConnectWebviewID: id},
	)
}
