package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// PendingLoginTTL is how long a login waits for the person's next step, or for the return from the vendor's pages.
const PendingLoginTTL = 10 * time.Minute

// expiredLoginsPerLogin is how many expired logins a new one deletes at most.
const expiredLoginsPerLogin = 20

// PendingLogin is a login on a webview that waits for the person. It is stored encrypted, so that every instance can
// continue it, and the values of earlier steps do not travel to the browser again.
type PendingLogin struct {
	ID       uuid.UUID `json:"-"`
	Provider string    `json:"-"`
	// Entered holds the values of the earlier steps, by field name.
	Entered map[string]string `json:"entered,omitempty"`
	// Step is what the person enters next; nil for a login on the vendor's pages.
	Step *login.Step `json:"step,omitempty"`
	// Refusal is why a login on the vendor's pages failed; nil if it did not.
	Refusal *login.Refusal `json:"refusal,omitempty"`
	// Verifier is the code verifier of PKCE.
	Verifier string `json:"verifier,omitempty"`
	// Browser is the secret of the browser that started a login on the vendor's pages. Only that browser may finish it.
	Browser string `json:"browser,omitempty"`
	// RedirectURI is where the vendor's pages lead to.
	RedirectURI string `json:"redirect_uri,omitempty"`
	// Language is the language that the person has chosen; empty: that of the browser.
	Language string `json:"language,omitempty"`
}

func pendingLoginPlace(id uuid.UUID) string { return "pending_logins.sealed/" + id.String() }

// StartStep stores a login that needs another step, and returns its identifier. The login before, if there is one,
// cannot continue any more. It fails with NotFound for a webview that ended.
func (s *Service) StartStep(ctx context.Context, webview, before uuid.UUID, p PendingLogin) (uuid.UUID, error) {
	return s.startPending(ctx, webview, before, p, nil)
}

// StartRedirect stores a login on the vendor's pages, and returns its OAuth state, which works once. It fails with
// NotFound for a webview that ended.
func (s *Service) StartRedirect(ctx context.Context, webview uuid.UUID, p PendingLogin) (state string, err error) {
	state = rand.Text()
	_, err = s.startPending(ctx, webview, uuid.Nil, p, hashState(state))
	return state, err
}

func hashState(state string) []byte {
	hash := sha256.Sum256([]byte(state))
	return hash[:]
}

func (s *Service) startPending(
	ctx context.Context,
	webview, before uuid.UUID,
	p PendingLogin,
	state []byte,
) (uuid.UUID, error) {
	id := domain.NewID()
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := tx.DropExpiredLogins(ctx, expiredLoginsPerLogin); err != nil {
			return err
		}
		drop := dbsqlc.DropPendingLoginParams{PendingLoginID: before, ConnectWebviewID: webview}
		if err := tx.DropPendingLogin(ctx, drop); err != nil {
			return err
		}
		n, err := tx.InsertPendingLogin(ctx, dbsqlc.InsertPendingLoginParams{
			PendingLoginID:   id,
			ConnectWebviewID: webview,
			Provider:         p.Provider,
			Sealed:           s.keys.Seal(pendingLoginPlace(id), domain.MustJSON(p)),
			StateHash:        state,
			Ttl:              PendingLoginTTL,
		})
		if err == nil && n == 0 {
			err = domain.WebviewNotFound(webview.String())
		}
		return err
	})
	if err != nil {
		return id, fmt.Errorf("store a login that waits for the person: %w", err)
	}
	return id, nil
}

// PendingLogin returns a login of a webview that waits for the person. It fails with NotFound after its time.
func (s *Service) PendingLogin(ctx context.Context, webview, id uuid.UUID) (PendingLogin, error) {
	r, err := s.db.GetPendingLogin(ctx, dbsqlc.GetPendingLoginParams{PendingLoginID: id, ConnectWebviewID: webview})
	if store.IsNoRows(err) {
		return PendingLogin{}, errLoginExpired
	}
	if err != nil {
		return PendingLogin{}, fmt.Errorf("read a login that waits for the person: %w", err)
	}
	return s.openPending(r)
}

func (s *Service) openPending(r dbsqlc.PendingLogin) (p PendingLogin, err error) {
	plain, err := s.keys.Open(pendingLoginPlace(r.PendingLoginID), r.Sealed)
	if err != nil {
		return p, fmt.Errorf("open a login that waits for the person: %w", err)
	}
	if json.Unmarshal(plain, &p) != nil { // the error may quote a password
		return p, fmt.Errorf("read a login that waits for the person: its stored form is invalid")
	}
	p.ID, p.Provider = r.PendingLoginID, r.Provider
	return p, nil
}

// errLoginExpired is the error for a pending login that there is not, or not any more.
var errLoginExpired = &domain.Error{
	Kind:    domain.NotFound,
	Type:    "connect_webview_not_found",
	Message: "This login has expired. Start over.",
}

// DropPendingLogin deletes a login that waits for the person.
func (s *Service) DropPendingLogin(ctx context.Context, webview, id uuid.UUID) error {
	err := s.db.DropPendingLogin(ctx, dbsqlc.DropPendingLoginParams{PendingLoginID: id, ConnectWebviewID: webview})
	if err != nil {
		return fmt.Errorf("delete a login that waits for the person: %w", err)
	}
	return nil
}

// Return is what a vendor's page leads back to.
type Return struct {
	PendingLogin
	Webview   Webview
	Workspace Workspace
	// Ended means that the state was used before, came too late, or was started in another browser. The login must not
	// continue, and the other fields are empty.
	Ended bool
}

// UseState finds the login of an OAuth state and marks the state as used, if browser is the secret of the browser that
// started the login. It fails with NotFound for an unknown state, and for a webview that ended.
func (s *Service) UseState(ctx context.Context, state, browser string) (out Return, err error) {
	r, err := s.db.GetLoginOfState(ctx, hashState(state))
	if store.IsNoRows(err) {
		return out, errLoginExpired
	}
	if err != nil {
		return out, fmt.Errorf("find the login of a state: %w", err)
	}
	p, err := s.openPending(r)
	if err != nil {
		return out, err
	}
	if p.Browser == "" || subtle.ConstantTimeCompare([]byte(p.Browser), []byte(browser)) == 0 {
		return Return{Ended: true}, nil
	}
	err = s.db.InTx(ctx, func(tx store.Tx) (err error) {
		_, err = tx.UseLoginState(ctx, hashState(state))
		return err
	})
	if store.IsNoRows(err) {
		return Return{Ended: true}, nil
	}
	if err != nil {
		return out, fmt.Errorf("use a state: %w", err)
	}
	out.PendingLogin = p
	token, err := s.webviewToken(ctx, r.ConnectWebviewID)
	if err != nil {
		return out, err
	}
	out.Webview, out.Workspace, err = s.OpenWebview(ctx, token)
	return out, err
}

// RefuseReturn records why a login on the vendor's pages failed.
func (s *Service) RefuseReturn(ctx context.Context, id uuid.UUID, refusal login.Refusal) error {
	err := s.db.ReplacePendingLogin(ctx, dbsqlc.ReplacePendingLoginParams{
		PendingLoginID: id,
		Sealed:         s.keys.Seal(pendingLoginPlace(id), domain.MustJSON(PendingLogin{Refusal: &refusal})),
	})
	if err != nil {
		return fmt.Errorf("record a failed login: %w", err)
	}
	return nil
}
