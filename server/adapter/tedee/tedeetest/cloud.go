// Package tedeetest is a fake of Tedee's cloud for tests, with one lock and the cloud's bad habits as switches. It is
// written from the vendor's documentation of 2026-05 (contract.yaml), and nothing here was compared with Tedee's
// servers. The contract judges each request and each response.
package tedeetest

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/contracttest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/tedee"
)

//go:embed contract.yaml
var contract []byte

// Credentials that the fake accepts.
const (
	// Key is a personal access key.
	Key = "smnxaz.IWA6u00VLQmA8tlfioDXcHbSiI6u8LgTG9cv3Evh0E"
	// ClientID and ClientSecret identify the operator's application.
	ClientID     = "bcc1fdc9-13ee-43b3-a13e-eaba8eaf7996"
	ClientSecret = "81A2Bde1ZsZeEPDJLASKq1sBsuKaNa11W"
	// UserID is the identity of the user.
	UserID = "7f0c2b1e-94d5-4a6f-8a53-0a1d2c3b4e5f"
	// Email is the address of the user.
	Email = "owner@example.com"
)

// Options are habits of the cloud from its start.
type Options struct {
	// PageSize is the number of locks in a page; 0: all locks.
	PageSize int
	// PagesFromZero means that the first page is 0 and not 1.
	PagesFromZero bool
	// RefusesRepeats means that a command to a bolt that is in its position is refused.
	RefusesRepeats bool
	// MaxPINs is the number of PINs that a keypad stores; 0: 100.
	MaxPINs int
}

// Cloud is a fake of Tedee's cloud. Its methods act on the account and on the first lock, as a person with the app or
// at the door.
type Cloud struct {
	// URL is the base of all addresses.
	URL string
	// Serial is the serial number of the first lock.
	Serial string

	server  *httptest.Server
	options Options

	mu      sync.Mutex
	locks   []*lock
	lastID  int64
	now     time.Time // of the last change, so that each has another time
	ops     map[string]*operation
	refused bool // the key was revoked
	calls   []string
	tokens  tokens
	keyEnds time.Time
	faults
}

// faults are the switches of bad habits.
type faults struct {
	class     adapter.Class // fails creations, or all calls
	cut       bool          // executes the next write, and loses its response
	late      bool          // executes the next write, and answers 408
	drop      bool          // confirms the next write without executing it
	busy      int           // calls of PINs that are answered with 409
	html      bool          // a proxy answers
	opReads   int           // reads of an operation that answer PENDING
	allowed   int           // calls until 429; negative: no limit
	stalled   chan struct{}
	held      chan struct{} // holds calls of PINs until it is closed
	hideLog   bool          // new activities do not show
	conflicts int           // 409 for concurrent calls
	arrived   int           // calls of PINs that are in progress
}

// Start starts a cloud with one lock that has a keypad and a bridge.
func Start(t testing.TB, o Options) *Cloud {
	t.Helper()
	c := &Cloud{
		options: o,
		lastID:  100,
		now:     time.Now().UTC().Truncate(time.Millisecond),
		ops:     map[string]*operation{},
		keyEnds: time.Now().Add(300 * 24 * time.Hour),
		faults:  faults{allowed: -1},
	}
	c.Serial = c.AddLock("Front door")
	judge := contracttest.Open(t, contract)
	c.server = httptest.NewServer(judge.Handler(t, c.handler()))
	c.URL = c.server.URL
	t.Cleanup(func() {
		c.Heal()
		c.server.Close()
	})
	return c
}

// set changes a switch.
func (c *Cloud) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// Heal ends all faults, except Busy and Limit.
func (c *Cloud) Heal() {
	c.set(func() {
		if c.stalled != nil {
			close(c.stalled)
		}
		if c.held != nil {
			close(c.held)
		}
		if c.class == adapter.Offline {
			c.first().connected = true
		}
		c.class, c.cut, c.late, c.drop, c.html, c.stalled, c.held = "", false, false, false, false, nil, nil
	})
}

// Fail fails creations with the class until Heal. Transient and AuthRevoked fail all calls.
func (c *Cloud) Fail(class adapter.Class) { c.set(func() { c.class = class }) }

// CutNext executes the next write of a PIN, and loses its response.
func (c *Cloud) CutNext() { c.set(func() { c.cut = true }) }

// LoseNext loses the next write of a PIN before it arrives.
func (c *Cloud) LoseNext() { c.set(func() { c.drop, c.cut = true, true }) }

// TimeoutNext executes the next write of a PIN, and answers 408.
func (c *Cloud) TimeoutNext() { c.set(func() { c.late = true }) }

// DropNext confirms the next write of a PIN without executing it.
func (c *Cloud) DropNext() { c.set(func() { c.drop = true }) }

// Busy answers the next n calls of PINs with 409.
func (c *Cloud) Busy(n int) { c.set(func() { c.busy = n }) }

// Proxy answers 404 with HTML, until Heal.
func (c *Cloud) Proxy() { c.set(func() { c.html = true }) }

// Stall leaves all calls unanswered until Heal.
func (c *Cloud) Stall() { c.set(func() { c.stalled = make(chan struct{}) }) }

// HoldPINs lets calls of PINs wait until Heal.
func (c *Cloud) HoldPINs() { c.set(func() { c.held = make(chan struct{}) }) }

// PINCalls returns how many calls of PINs are in progress, and how many were refused because of another.
func (c *Cloud) PINCalls() (inProgress, conflicts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arrived, c.conflicts
}

// Limit answers 429 after n further calls; a negative n ends the limit.
func (c *Cloud) Limit(n int) { c.set(func() { c.allowed = n }) }

// SlowOperations answers the first n reads of each operation with PENDING.
func (c *Cloud) SlowOperations(n int) { c.set(func() { c.opReads = n }) }

// HideActivity hides the activities that follow, or shows all.
func (c *Cloud) HideActivity(hide bool) { c.set(func() { c.hideLog = hide }) }

// Revoke revokes the personal access key, and all tokens.
func (c *Cloud) Revoke() { c.set(func() { c.refused = true; c.tokens = tokens{} }) }

// EndKeyAt sets the end of the personal access key.
func (c *Cloud) EndKeyAt(at time.Time) { c.set(func() { c.keyEnds = at }) }

// CloseConnections closes all connections once.
func (c *Cloud) CloseConnections() { c.server.CloseClientConnections() }

// Stop stops the cloud.
func (c *Cloud) Stop() {
	c.Heal()
	c.server.CloseClientConnections()
	c.server.Close()
}

// Calls returns the calls since the last time as "METHOD path", without prefix and query, and forgets them.
func (c *Cloud) Calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

// apiError is a refusal in the vendor's shape.
type apiError struct {
	status  int
	message string
}

const prefix = "/api/" + tedee.APIVersion

// answer is what a handler returns: a status and a result, or an error.
type answer struct {
	status int
	result any
	err    *apiError
}

func ok(result any) answer { return answer{status: http.StatusOK, result: result} }

func refuse(status int, message string) answer { return answer{err: &apiError{status, message}} }

func (c *Cloud) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) answer{
		"GET /my/lock":                         c.listLocks,
		"PATCH /my/lock":                       c.updateLock,
		"GET /my/lock/sync":                    c.syncLocks,
		"GET /my/lock/{id}":                    c.getLock,
		"GET /my/lock/{id}/sync":               c.syncLock,
		"POST /my/lock/{id}/operation/lock":    func(r *http.Request) answer { return c.operate(r, true) },
		"POST /my/lock/{id}/operation/unlock":  func(r *http.Request) answer { return c.operate(r, false) },
		"GET /my/device/operation/{operation}": c.getOperation,
		"GET /my/lock/{id}/pin":                c.pins(c.listPINs),
		"POST /my/lock/{id}/pin":               c.pins(c.write(c.createPIN)),
		"GET /my/lock/{id}/pin/{pin}":          c.pins(c.getPIN),
		"PUT /my/lock/{id}/pin/{pin}":          c.pins(c.write(c.updatePIN)),
		"DELETE /my/lock/{id}/pin/{pin}":       c.pins(c.write(c.deletePIN)),
		"GET /my/deviceactivity":               c.listActivity,
		"GET /my/personalaccesskey":            c.listKeys,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+prefix+path, func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, handle) })
	}
	mux.HandleFunc("POST /oauth2/v2.0/token", c.serveToken)
	return mux
}

// serve applies the habits of the whole cloud, and writes the vendor's envelope.
func (c *Cloud) serve(w http.ResponseWriter, r *http.Request, handle func(*http.Request) answer) {
	c.mu.Lock()
	c.calls = append(c.calls, r.Method+" "+strings.TrimPrefix(r.URL.Path, prefix))
	stalled, html := c.stalled, c.html
	failed := c.failsAll(r)
	c.mu.Unlock()
	switch {
	case stalled != nil:
		select {
		case <-stalled:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case html:
		w.Header().Set(contracttest.Deviates, "a proxy")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<html>no such route</html>")
		return
	}
	got := answer{err: failed}
	if failed == nil {
		got = handle(r)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	body := map[string]any{"success": true, "errorMessages": []string{}, "statusCode": got.status, "result": got.result}
	if e := got.err; e != nil {
		got.status = e.status
		if got.status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1200")
		}
		body = map[string]any{"success": false, "errorMessages": []string{e.message}, "statusCode": e.status}
	}
	w.WriteHeader(got.status)
	if got.status == http.StatusNoContent {
		return
	}
	_ = json.NewEncoder(w).Encode(body) // of a recorder
}

// failsAll returns the refusal of a call that no handler sees. The caller must hold the mutex.
func (c *Cloud) failsAll(r *http.Request) *apiError {
	switch {
	case !c.accepts(r.Header.Get("Authorization")) || c.class == adapter.AuthRevoked:
		return &apiError{http.StatusUnauthorized, "The credentials are not valid."}
	case c.allowed == 0:
		return &apiError{http.StatusTooManyRequests, "API calls quota exceeded."}
	case c.class == adapter.Transient:
		return &apiError{http.StatusServiceUnavailable, "Service unavailable."}
	}
	if c.allowed > 0 {
		c.allowed--
	}
	return nil
}

func (c *Cloud) accepts(authorization string) bool {
	if c.refused {
		return false
	}
	token, bearer := strings.CutPrefix(authorization, "Bearer ")
	return authorization == "PersonalKey "+Key || bearer && token != "" && token == c.tokens.access
}

// tokens are the current tokens of the OAuth client.
type tokens struct {
	access, refresh string
	n               int
}

// NewTokens starts a login of the OAuth client, and returns its tokens.
func (c *Cloud) NewTokens(expiresAt time.Time) adapter.Tokens {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rotate()
	return adapter.Tokens{Access: c.tokens.access, Refresh: c.tokens.refresh, ExpiresAt: expiresAt}
}

// ExpireTokens ends the current access token.
func (c *Cloud) ExpireTokens() { c.set(func() { c.tokens.access = "" }) }

// Refreshes returns how many pairs of tokens were issued.
func (c *Cloud) Refreshes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens.n
}

func (c *Cloud) rotate() {
	c.tokens.n++
	claims := fmt.Sprintf(`{"oid":%q,"email":%q,"name":"The Owner","n":%d}`, UserID, Email, c.tokens.n)
	part := base64.RawURLEncoding.EncodeToString
	c.tokens.access = part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + ".signature"
	c.tokens.refresh = "refresh-token-" + strconv.Itoa(c.tokens.n)
}

// serveToken exchanges a refresh token, which works once.
func (c *Cloud) serveToken(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	valid := r.FormValue("grant_type") == "refresh_token" && r.FormValue("client_id") == ClientID &&
		r.FormValue("client_secret") == ClientSecret && c.tokens.refresh != "" &&
		r.FormValue("refresh_token") == c.tokens.refresh
	if !valid {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant","error_description":"AADB2C90080: The provided grant has expired."}`)
		return
	}
	c.rotate()
	_ = json.NewEncoder(w).Encode(map[string]any{ // of a recorder
		"access_token":             c.tokens.access,
		"token_type":               "Bearer",
		"expires_in":               "14400",
		"refresh_token":            c.tokens.refresh,
		"refresh_token_expires_in": 1209600,
	})
}

func (c *Cloud) listKeys(*http.Request) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, _, _ := strings.Cut(Key, ".")
	return ok([]map[string]any{{
		"id":      "3fa85f64-5717-4562-b3fc-2c963f66afa6",
		"name":    "deviceaccess",
		"prefix":  name,
		"scopes":  []string{"Account.Read", "Device.ReadWrite", "Lock.Operate", "DeviceActivity.Read"},
		"validTo": stamp(c.keyEnds),
	}})
}

// stamp is a time as in the samples.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
