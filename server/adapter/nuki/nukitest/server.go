// Package nukitest is a fake of the Nuki Web API with state, written from the facts that contract.yaml states. It judges
// the requests that it receives and its own responses by that contract. It was never compared with the vendor.
package nukitest

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/contracttest"
)

//go:embed contract.yaml
var contract []byte

// AccountID is the accountId of the fake's account.
const AccountID = 4711

// Token is the API token of the account.
const Token = "0123456789abcdef-api-token-of-nuki"

// Options are the habits of the fake.
type Options struct {
	// Client is the operator's registration, for OAuth.
	Client adapter.Client
	// ListLag is the number of lists of codes that do not show an accepted write.
	ListLag int
	// BusyReads is the number of lists that show a new or changed code with an operation on its way. Another write of
	// the code is answered with 423 until then.
	BusyReads int
	// AcceptDuplicates accepts a PIN that is on the lock, as the vendor may do before the lock knows it.
	AcceptDuplicates bool
	// MaxCodes is the room of a lock; 0 means 200.
	MaxCodes int
	// ForbidLog refuses the log, as for a token without the right.
	ForbidLog bool
	// RepeatPushes sends each push twice.
	RepeatPushes bool
}

// Server is the fake.
type Server struct {
	URL string

	t       testing.TB
	options Options
	http    *httptest.Server
	pushing sync.WaitGroup
	client  *http.Client

	mu       sync.Mutex
	locks    []*Lock
	logs     []logEntry
	hooks    []webhook
	ids      int
	last     time.Time
	requests map[string]int
	faults   faults
	tokens   tokens
}

// Start starts the fake with one lock that has a keypad.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	o.MaxCodes = cmp.Or(o.MaxCodes, 200)
	s := &Server{t: t, options: o, requests: map[string]int{}, client: &http.Client{Timeout: time.Minute}}
	s.tokens.api = true
	s.AddLock("Front door")
	judged := contracttest.Open(t, contract).Handler(t, s.routes())
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.stalls(r):
			return
		case r.URL.Path == "/oauth/authorize": // opened by people
			s.authorize(w, r)
			return
		}
		judged.ServeHTTP(w, r)
	}))
	s.URL = s.http.URL
	t.Cleanup(func() {
		s.Heal()
		s.http.CloseClientConnections()
		s.http.Close()
		s.pushing.Wait()
		s.client.CloseIdleConnections()
	})
	return s
}

// AddLock adds a Smart Lock of the third generation with a keypad.
func (s *Server) AddLock(name string) *Lock { return s.AddDevice(name, 4, true) }

// AddDevice adds a device of a type.
func (s *Server) AddDevice(name string, kind int, keypad bool) *Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &Lock{
		ID:     int64(kind)<<32 + 0x1A2B3C00 + int64(len(s.locks)),
		s:      s,
		name:   name,
		kind:   kind,
		keypad: keypad,
		state:  stateLocked,
		auto:   advancedConfig{AutoLockTimeout: 300, UnlatchDuration: 3},
	}
	s.locks = append(s.locks, l)
	return l
}

// Lock returns the first lock.
func (s *Server) Lock() *Lock { return s.locks[0] }

// Requests returns the number of requests of a method and a pattern, such as "PUT /smartlock/{id}/auth".
func (s *Server) Requests(pattern string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[pattern]
}

// Stop stops the fake.
func (s *Server) Stop() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Disconnect closes all connections once.
func (s *Server) Disconnect() { s.http.CloseClientConnections() }

func (s *Server) newID() string {
	s.ids++
	return fmt.Sprintf("5f%022x", s.ids)
}

// now returns the time of the next event. No two events have the same.
func (s *Server) now() time.Time {
	s.last = time.Now().UTC().Truncate(time.Millisecond)
	if n := len(s.logs); n > 0 && !s.last.After(s.logs[n-1].Date) {
		s.last = s.logs[n-1].Date.Add(time.Millisecond)
	}
	return s.last
}

// refusal is an error that a handler answers with.
type refusal struct {
	status int
	text   string
	// oauth means an error of RFC 6749, whose code is text.
	oauth bool
}

func (r refusal) Error() string { return r.text }

// handle registers a handler that runs under the lock of the state. It answers with what the handler returns: nil is 204.
func (s *Server) handle(mux *http.ServeMux, pattern string, h func(r *http.Request) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests[pattern]++
		out, err := any(nil), s.refuse(r)
		if err == nil {
			out, err = h(r)
		}
		cut := s.faults.cut && r.Method != http.MethodGet && r.Method != http.MethodPost
		s.mu.Unlock()
		if cut && err == nil {
			panic(http.ErrAbortHandler)
		}
		s.answer(w, out, err)
	})
}

func (s *Server) answer(w http.ResponseWriter, out any, err error) {
	var no refusal
	switch {
	case errors.As(err, &no):
		if no.status == http.StatusServiceUnavailable {
			w.Header().Set(contracttest.Deviates, "the page of a proxy")
			w.WriteHeader(no.status)
			_, _ = io.WriteString(w, "<html>") // the client may have gone
			return
		}
		if no.status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "120")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(no.status)
		out = map[string]any{"code": no.status, "description": no.text}
		if no.oauth {
			out = map[string]any{"error": no.text}
		}
		_ = json.NewEncoder(w).Encode(out) // the client may have gone
	case out == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out) // the client may have gone
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	s.handle(mux, "GET /smartlock", func(*http.Request) (any, error) {
		out := []smartlock{}
		for _, l := range s.locks {
			if !l.removed {
				out = append(out, l.wire())
			}
		}
		return out, nil
	})
	s.handle(mux, "GET /smartlock/{id}", s.withLock(func(l *Lock, _ *http.Request) (any, error) {
		return l.wire(), nil
	}))
	s.handle(mux, "GET /smartlock/auth", func(*http.Request) (any, error) {
		out := []auth{}
		for _, l := range s.locks {
			if !l.removed {
				out = append(out, l.list()...)
			}
		}
		return out, nil
	})
	s.handle(mux, "GET /smartlock/{id}/auth", s.withLock(func(l *Lock, _ *http.Request) (any, error) {
		return append([]auth{}, l.list()...), nil
	}))
	s.handle(mux, "GET /smartlock/log", s.listLog)
	s.handle(mux, "PUT /smartlock/{id}/auth", s.withLock(s.create))
	s.handle(mux, "POST /smartlock/{id}/auth/{auth}", s.withLock(s.change))
	s.handle(mux, "DELETE /smartlock/{id}/auth/{auth}", s.withLock(s.delete))
	s.handle(mux, "POST /smartlock/{id}/action", s.withLock(func(l *Lock, r *http.Request) (any, error) {
		var body struct {
			Action int `json:"action"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, refusal{status: http.StatusBadRequest, text: "bad parameter"}
		}
		l.move(body.Action)
		return nil, nil
	}))
	s.handle(mux, "POST /smartlock/{id}/advanced/config", s.withLock(func(l *Lock, r *http.Request) (any, error) {
		var body advancedConfig
		if json.NewDecoder(r.Body).Decode(&body) != nil || body.UnlatchDuration == 0 {
			return nil, refusal{status: http.StatusBadRequest, text: "incomplete configuration"}
		}
		l.auto = body
		return nil, nil
	}))
	s.oauthRoutes(mux)
	s.webhookRoutes(mux)
	return mux
}

func (s *Server) withLock(h func(*Lock, *http.Request) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		for _, l := range s.locks {
			if strconv.FormatInt(l.ID, 10) == r.PathValue("id") && !l.removed {
				return h(l, r)
			}
		}
		return nil, refusal{status: http.StatusNotFound, text: "no such smartlock"}
	}
}

func (s *Server) listLog(r *http.Request) (any, error) {
	if s.options.ForbidLog {
		return nil, refusal{status: http.StatusForbidden, text: "forbidden"}
	}
	q := r.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), "20"))
	if err != nil {
		return nil, refusal{status: http.StatusBadRequest, text: "limit"}
	}
	from, _ := time.Parse(time.RFC3339Nano, q.Get("fromDate"))
	out := []logEntry{}
	for _, e := range slices.Backward(s.logs) {
		older := q.Get("id") == "" || e.ID < q.Get("id")
		if older && !e.Date.Before(from) && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (s *Server) create(l *Lock, r *http.Request) (any, error) {
	var body authRequest
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		return nil, refusal{status: http.StatusBadRequest, text: "bad parameter"}
	}
	switch {
	case s.faults.class == adapter.Duplicate, !s.options.AcceptDuplicates && l.hasPIN(body.Code, ""):
		return nil, refusal{status: http.StatusConflict, text: "code " + strconv.Itoa(body.Code) + " exists"}
	case s.faults.class == adapter.Invalid, len(l.codes) >= s.options.MaxCodes:
		return nil, refusal{status: http.StatusUnprocessableEntity, text: "refused: " + strconv.Itoa(body.Code)}
	}
	l.write("", func() {
		c := l.newCode(auth{})
		body.apply(&c.auth)
		c.busy = s.options.BusyReads
		l.codes = append(l.codes, c)
		s.pushCode(c.auth, false)
	})
	return nil, nil
}

func (l *Lock) hasPIN(pin int, except string) bool {
	return slices.ContainsFunc(l.codes, func(c *code) bool { return *c.Code == pin && c.ID != except })
}

// busyCode returns the code of a request. It refuses one that has an operation on its way.
func (s *Server) busyCode(l *Lock, r *http.Request) (*code, error) {
	c := l.find(r.PathValue("auth"))
	switch {
	case c == nil || c.direct:
		return nil, refusal{status: http.StatusNotFound, text: "no such authorization"}
	case l.isBusy(c):
		return nil, refusal{status: http.StatusLocked, text: "previous operation running"}
	}
	return c, nil
}

func (s *Server) change(l *Lock, r *http.Request) (any, error) {
	c, err := s.busyCode(l, r)
	if err != nil {
		return nil, err
	}
	var body authRequest
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		return nil, refusal{status: http.StatusBadRequest, text: "bad parameter"}
	}
	if !s.options.AcceptDuplicates && l.hasPIN(body.Code, c.ID) {
		return nil, refusal{status: http.StatusConflict, text: "code exists"}
	}
	l.write(c.ID, func() {
		body.apply(&c.auth)
		c.busy, c.UpdateDate = s.options.BusyReads, s.now()
		s.pushCode(c.auth, false)
	})
	return nil, nil
}

func (s *Server) delete(l *Lock, r *http.Request) (any, error) {
	c, err := s.busyCode(l, r)
	if err != nil {
		return nil, err
	}
	l.write(c.ID, func() {
		l.drop(c.ID)
		s.pushCode(c.auth, true)
	})
	return nil, nil
}

// post sends a push without waiting for it.
func (s *Server) post(url string, header http.Header, body []byte) {
	s.pushing.Go(func() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, newReader(body))
		if err != nil {
			return
		}
		req.Header = header
		if resp, err := s.client.Do(req); err == nil {
			resp.Body.Close()
		}
	})
}
