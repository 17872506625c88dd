package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

// bodyLimit is the maximum size of a request body in bytes.
const bodyLimit = 64 << 10

func (s *Sandbox) routes() http.Handler {
	all := chi.NewRouter()
	all.Post("/login", s.login)
	all.Put("/accounts", s.ownerOnly(s.putAccount))
	all.Delete("/accounts", s.ownerOnly(s.deleteAccount))
	r := chi.NewRouter()
	all.Mount("/", r)
	r.Use(s.authenticate)
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "there is no such path", http.StatusNotFound)
	})
	r.Group(func(r chi.Router) {
		r.Use(refuseRevoked)
		r.Get("/locks", listLocks)
		r.Get("/locks/{lock}", onDevice(false, getLock))
		r.Put("/locks/{lock}/thermostat", onThermostat(putThermostat))
		noiseRoutes(r)
		r.Post("/locks/{lock}/actions", onLock(true, postAction))
		r.Post("/locks/{lock}/offline_codes", onLock(true, postOffline))
		r.Put("/locks/{lock}/auto_lock", onLock(true, putAutoLock))
		r.Get("/locks/{lock}/access_codes", onLock(false, listCodes))
		r.Post("/locks/{lock}/access_codes", onLock(true, postCode))
		r.Patch("/access_codes/{code}", onCode(patchCode))
		r.Delete("/access_codes/{code}", onCode(deleteCode))
		r.Get("/webhooks", listWebhooks)
		r.Post("/webhooks", postWebhook)
		r.Delete("/webhooks/{webhook}", deleteWebhook)
		accessRoutes(r)
	})
	r.Route("/sandbox", controls)
	return all
}

type contextKey struct{}

// accountOf returns the account of the request's token.
func accountOf(r *http.Request) *account { return r.Context().Value(contextKey{}).(*account) }

func (s *Sandbox) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.RLock()
		a := s.accounts[sha256.Sum256([]byte(token))]
		s.mu.RUnlock()
		if a == nil {
			answerProblem(w, refuse(unauthorized, "The token is not accepted."))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), contextKey{}, a)))
	})
}

func refuseRevoked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if accountOf(r).isRevoked() {
			answerProblem(w, refuse(unauthorized, "The account's access was revoked."))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// lockHandler handles a request about a device.
type lockHandler func(w http.ResponseWriter, r *http.Request, l *lock, f fault)

// onLock resolves the lock in the path, and applies its faults. Other devices are NOT_SUPPORTED.
func onLock(write bool, handle lockHandler) http.HandlerFunc {
	return onDevice(write, func(w http.ResponseWriter, r *http.Request, l *lock, f fault) {
		if !l.prof.isLock() {
			answerProblem(w, refuse(notSupported, "The device is not a lock."))
			return
		}
		handle(w, r, l, f)
	})
}

// onDevice resolves the device in the path, and applies its faults.
func onDevice(write bool, handle lockHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		faulty(w, r, accountOf(r).lock(chi.URLParam(r, "lock")), lockNotFound, write, handle)
	}
}

// onCode resolves the lock of the access code in the path, and applies its faults.
func onCode(handle lockHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, _ := strings.CutPrefix(chi.URLParam(r, "code"), "ac_")
		lockID, _, _ := strings.Cut(id, "_")
		faulty(w, r, accountOf(r).lock(lockID), codeNotFound, true, handle)
	}
}

func faulty(w http.ResponseWriter, r *http.Request, l *lock, absent kind, write bool, handle lockHandler) {
	if l == nil {
		answerProblem(w, refuse(absent, "The account has no such lock or access code."))
		return
	}
	f := l.drawFault(write)
	switch {
	case f.problem != nil:
		answerProblem(w, f.problem)
	case f.abort:
		handle(nowhere{http.Header{}}, r, l, f)
		panic(http.ErrAbortHandler)
	default:
		handle(w, r, l, f)
	}
}

// nowhere discards a response.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}

// read decodes the request's body into v: INVALID_REQUEST.
func read(r *http.Request, v any) *problem {
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		return refuse(invalidRequest, "The body is not the expected JSON object.")
	}
	return nil
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

// respond responds with v, or with the problem if there is one.
func respond(w http.ResponseWriter, v any, p *problem) {
	if p != nil {
		answerProblem(w, p)
		return
	}
	answer(w, http.StatusOK, v)
}

func answerProblem(w http.ResponseWriter, p *problem) {
	body := map[string]any{"error_code": p.kind.code, "message": p.message}
	if p.conflict != "" {
		body["conflicting_access_code_id"] = p.conflict
	}
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
		body["retry_after_ms"] = max(1, p.retryAfter/time.Millisecond)
	}
	answer(w, p.kind.status, body)
}
