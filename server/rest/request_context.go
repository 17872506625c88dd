package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

const (
	requestIDHeader = "Seam-Request-Id"
	jsonUTF8        = jsonType + "; charset=utf-8"
)

// answered are headers of every answer, with values that all of them share.
var answered = []struct {
	name   string
	values []string
}{
	{"Cache-Control", []string{"no-store"}}, // answers hold PINs
	{acceptsKeysHeader, []string{"true"}},
	{"X-Content-Type-Options", []string{"nosniff"}},
}

// exchange is one request and its answer: what the edge learns of it on the way, for the layers further in and for
// the access log. It is the ResponseWriter of everything inside.
type exchange struct {
	http.ResponseWriter
	id        string
	request   *http.Request
	operation *operation // nil outside the contract
	principal access.Principal
	params    map[string]any // what was given, typed as the contract says
	key       string         // Idempotency-Key; empty: none

	unanswered func() // to be called where we fail; nil: there is nothing to be done then

	status  int // 0 until the answer has begun
	written int
	unread  error  // why the answer has not been sent to its end
	torn    bool   // we could not go on with an answer that had begun
	failure string // error.type of the answer

	begun time.Time
	turn  time.Time   // when it was taken up; only where there are traces
	span  traces.Span // none until somebody with a good credential is known to ask
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange) // observe has put it there
	return x
}

// principal is who makes the request; zero in public operations.
func principal(ctx context.Context) access.Principal { return exchangeOf(ctx).principal }

// acting is the context for what the request does, which the audit log tells of.
func (x *exchange) acting(ctx context.Context) context.Context {
	if x.operation.public {
		return ctx
	}
	id, _ := uuid.Parse(x.id)
	return access.Acting(ctx, access.Act{Principal: x.principal, RequestID: id, Operation: x.operation.path, Named: func() []access.Subject {
		return subjects(nil, x.params)
	}})
}

// subjects are the identifiers that parameters hold, besides those in found.
func subjects(found []access.Subject, params map[string]any) []access.Subject {
	add := func(kind string, value any) {
		text, _ := value.(string)
		if id, err := uuid.Parse(text); err == nil && access.IsSubject(kind) {
			found = append(found, access.Subject{Kind: kind, ID: id})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch value := params[name].(type) {
		case string:
			add(name, value)
		case []any:
			for _, one := range value {
				if inner, ok := one.(map[string]any); ok {
					found = subjects(found, inner)
				} else {
					add(strings.TrimSuffix(name, "s"), one)
				}
			}
		}
	}
	return found
}

// Unwrap lets http.ResponseController reach the writer of the server.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
		if header := x.Header(); header.Get("Content-Type") == jsonType {
			header.Set("Content-Type", jsonUTF8)
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n, err := x.ResponseWriter.Write(b)
	x.written += n
	if x.unread == nil {
		x.unread = err
	}
	return n, err
}

// observe gives every request its id, answers for what panics inside, and writes the access log: never a body, a query
// string, a path that the contract does not have, or a header.
func (e *edge) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		x := &exchange{ResponseWriter: w, id: uuid.Must(uuid.NewV7()).String(), operation: e.operations[r.URL.Path], begun: start}
		r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
		x.request = r
		header := w.Header()
		header[requestIDHeader] = []string{x.id}
		for _, always := range answered {
			header[always.name] = always.values
		}
		defer func() {
			thrown := recover()
			err, _ := thrown.(error)
			aborted := errors.Is(err, http.ErrAbortHandler)
			if thrown != nil && !aborted {
				e.fail(x, r, &panicked{value: thrown, stack: debug.Stack()})
			}
			if x.torn {
				aborted, thrown = true, http.ErrAbortHandler
			}
			if x.unanswered != nil && x.status >= http.StatusInternalServerError && r.Context().Err() == nil { // nobody has hung up
				x.unanswered()
			}
			e.log(x, time.Since(start))
			if aborted {
				panic(thrown)
			}
		}()
		next.ServeHTTP(x, r)
	})
}

// panicked is a panic as an error.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

func (e *edge) log(x *exchange, duration time.Duration) {
	route := "unknown"
	if x.operation != nil {
		route = x.operation.path
	}
	if e.observed != nil {
		e.observed(route, x.status, duration)
	}
	e.endSpan(x, route)
	attributes := []slog.Attr{
		slog.String("request_id", x.id),
		slog.String("method", x.request.Method),
		slog.String("route", route),
		slog.Int("status", x.status),
		slog.Int("bytes", x.written),
		slog.Duration("duration", duration),
	}
	if x.principal.WorkspaceID != uuid.Nil {
		attributes = append(attributes, slog.String("workspace_id", x.principal.WorkspaceID.String()))
	}
	if x.failure != "" {
		attributes = append(attributes, slog.String("error", x.failure))
	}
	e.logger.LogAttrs(x.span.In(x.request.Context()), slog.LevelInfo, "request", attributes...)
}

// hungUp says whether an error is that the caller has not waited for the answer.
func (x *exchange) hungUp(err error) bool {
	return errors.Is(err, context.Canceled) && x.request.Context().Err() != nil
}

// logCause records what the caller is not told.
func (e *edge) logCause(x *exchange, err error) {
	if x.unread != nil && errors.Is(err, x.unread) {
		e.logger.LogAttrs(x.request.Context(), slog.LevelInfo, "the answer was not read to its end", slog.String("request_id", x.id), slog.String("cause", err.Error()))
		return
	}
	level := slog.LevelError
	if x.hungUp(err) {
		level = slog.LevelInfo
	}
	e.logger.LogAttrs(x.span.In(x.request.Context()), level, "request failed", slog.String("request_id", x.id), slog.String("cause", err.Error()))
}
