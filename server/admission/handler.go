package admission

import (
	"context"
	"io"
	"net/http"
	"time"
)

type requestKey struct{}

// Limit returns a handler that counts what next receives and sends. Only handlers inside Middleware wait for slots.
func (c *Controller) Limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := c.newRequest(r)
		defer v.end()
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, v))
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &body{r.Body, v, r.Context()}
		}
		next.ServeHTTP(&answer{ResponseWriter: w, visit: v}, r)
	})
}

// Middleware runs next with a slot, and busy if the request gets no slot in time.
func Middleware(next, busy http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := r.Context().Value(requestKey{}).(*request)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		v.usesSlots = true
		if err := v.acquire(r.Context()); err != nil {
			v.finish()
			busy.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Release releases the slot of the request of ctx, which only waits from now on.
func Release(ctx context.Context) {
	if v, ok := ctx.Value(requestKey{}).(*request); ok {
		v.finish()
	}
}

// WithoutSlot calls wait while the request of ctx has no slot, and acquires a slot again afterwards. It returns the
// error of wait, ErrBusy, or the error of ctx.
func WithoutSlot(ctx context.Context, wait func() error) error {
	v, ok := ctx.Value(requestKey{}).(*request)
	if !ok || !v.usesSlots {
		return wait()
	}
	v.suspend()
	if err := wait(); err != nil {
		return err
	}
	return v.acquire(ctx)
}

// Reacquire calls work with a new slot as a heavy request, for more of a response that has started. It returns the
// error of work, ErrBusy, or the error of ctx.
func Reacquire(ctx context.Context, work func() error) error {
	v, ok := ctx.Value(requestKey{}).(*request)
	if !ok || !v.usesSlots {
		return work()
	}
	v.resume()
	defer v.finish()
	if err := v.acquire(ctx); err != nil {
		return err
	}
	return work()
}

// body is a request body that counts its bytes.
type body struct {
	io.ReadCloser
	visit *request
	ctx   context.Context
}

func (b *body) Read(p []byte) (int, error) {
	v := b.visit
	if v.usesSlots {
		v.suspend()
	}
	if v.conn != nil {
		v.conn.setState(asking)
	}
	if late := v.acquireBody(b.ctx); late != nil {
		return 0, late
	}
	n, err := b.ReadCloser.Read(p)
	if v.conn != nil {
		v.conn.setState(working)
	}
	if n > 0 {
		v.received(n)
		v.holdBytes(n, false)
	}
	if v.usesSlots {
		if late := v.acquire(b.ctx); late != nil {
			return n, late
		}
	}
	return n, err
}

// answer is a ResponseWriter that counts its bytes.
type answer struct {
	http.ResponseWriter
	visit *request
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
	a.visit.finish()
	a.visit.sends(len(b))
	if len(b) <= freeBytes {
		return a.ResponseWriter.Write(b)
	}
	if a.visit.conn != nil {
		a.visit.conn.setState(reading)
		defer a.visit.conn.setState(working)
	}
	a.visit.holdBytes(len(b), true)
	defer a.visit.unholdBytes(len(b))
	control := http.NewResponseController(a.ResponseWriter)
	for n < len(b) {
		_ = control.SetWriteDeadline(time.Now().Add(WriteStallTimeout)) // writers in tests have no deadlines
		m, err := a.ResponseWriter.Write(b[n:min(len(b), n+writeChunk)])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}
