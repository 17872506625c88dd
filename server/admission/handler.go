package admission

import (
	"context"
	"io"
	"net/http"
	"time"
)

type visitKey struct{}

// Limit returns a handler that counts what next receives and sends. Only handlers inside Middleware wait for slots.
func (c *Crowd) Limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := c.visit(r)
		defer v.leave()
		r = r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &body{r.Body, v, r.Context()}
		}
		next.ServeHTTP(&answer{ResponseWriter: w, visit: v}, r)
	})
}

// Middleware runs next with a slot, and busy if the request gets no slot in time.
func InTurn(next, busy http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := r.Context().Value(visitKey{}).(*visit)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		v.inTurn = true
		if err := v.take(r.Context()); err != nil {
			v.done()
			busy.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Release releases the slot of the request of ctx, which only waits from now on.
func Rest(ctx context.Context) {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		v.done()
	}
}

// WithoutSlot calls wait while the request of ctx has no slot, and acquires a slot again afterwards. It returns the
// error of wait, ErrBusy, or the error of ctx.
func Aside(ctx context.Context, wait func() error) error {
	v, ok := ctx.Value(visitKey{}).(*visit)
	if !ok || !v.inTurn {
		return wait()
	}
	v.pass()
	if err := wait(); err != nil {
		return err
	}
	return v.take(ctx)
}

// Reacquire calls work with a new slot as a heavy request, for more of a response that has started. It returns the
// error of work, ErrBusy, or the error of ctx.
func Again(ctx context.Context, work func() error) error {
	v, ok := ctx.Value(visitKey{}).(*visit)
	if !ok || !v.inTurn {
		return work()
	}
	v.resume()
	defer v.done()
	if err := v.take(ctx); err != nil {
		return err
	}
	return work()
}

// body is a request body that counts its bytes.
type body struct {
	io.ReadCloser
	visit *visit
	ctx   context.Context
}

func (b *body) Read(p []byte) (int, error) {
	v := b.visit
	if v.inTurn {
		v.pass()
	}
	if v.conn != nil {
		v.conn.becomes(asking)
	}
	if late := v.takeRoom(b.ctx); late != nil {
		return 0, late
	}
	n, err := b.ReadCloser.Read(p)
	if v.conn != nil {
		v.conn.becomes(working)
	}
	if n > 0 {
		v.received(n)
		v.hold(n, false)
	}
	if v.inTurn {
		if late := v.take(b.ctx); late != nil {
			return n, late
		}
	}
	return n, err
}

// answer is a ResponseWriter that counts its bytes.
type answer struct {
	http.ResponseWriter
	visit *visit
}

// Unwrap returns the server's writer, for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	// the rest of the body is not read
	if status == http.StatusRequestEntityTooLarge {
		a.Header().Set("Connection", "close")
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write sends b in chunks, each of which the client must read within WriteStallTimeout.
func (a *answer) Write(b []byte) (n int, err error) {
	a.visit.done()
	a.visit.sends(len(b))
	if len(b) <= ignored {
		return a.ResponseWriter.Write(b)
	}
	if a.visit.conn != nil {
		a.visit.conn.becomes(reading)
		defer a.visit.conn.becomes(working)
	}
	a.visit.hold(len(b), true)
	defer a.visit.release(len(b))
	control := http.NewResponseController(a.ResponseWriter)
	for n < len(b) {
		_ = control.SetWriteDeadline(time.Now().Add(StalledAfter)) // writers in tests have no deadlines
		m, err := a.ResponseWriter.Write(b[n:min(len(b), n+part)])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}
