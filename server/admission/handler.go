package admission

import (
	"context"
	"io"
	"net/http"
	"time"
)

type visitKey struct{}

// Limit counts what next receives and sends. What is inside InTurn is worked on in turn.
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

// InTurn lets next work when it is the request's turn; busy answers when that does not come in time.
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

// Rest gives up the turn of the request of ctx: from now on it only waits.
func Rest(ctx context.Context) {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		v.done()
	}
}

// Aside lets the request of ctx wait for others without its turn, and takes one again afterwards. It fails as wait does, with ErrBusy,
// or as ctx.
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

// Again lets the request of ctx, whose answer has begun, work on more of it in a turn of its own, as what costs much. It fails as work
// does, with ErrBusy, or as ctx.
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

// body is what is being received.
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

// answer is what is being sent.
type answer struct {
	http.ResponseWriter
	visit *visit
}

// Unwrap lets http.ResponseController reach the writer of the server.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if status == http.StatusRequestEntityTooLarge { // what else is sent is not read
		a.Header().Set("Connection", "close")
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write sends an answer in parts, each of which has to be read within StalledAfter.
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
		_ = control.SetWriteDeadline(time.Now().Add(StalledAfter)) // a writer without deadlines is a test's
		m, err := a.ResponseWriter.Write(b[n:min(len(b), n+part)])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}
