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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

const (
	requestIDHeader = "Seam-Request-Id"
	jsonUTF8        = jsonType + "; charset=utf-8"
)

// commonHeaders are the headers of every response. All responses share the values.
var commonHeaders = []struct {
	name   string
	values []string
}{
	{"Cache-Control", []string{"no-store"}}, // responses contain PINs
	{acceptsKeysHeader, []string{"true"}},
	{"X-Content-Type-Options", []string{"nosniff"}},
}

// requestContext is a request and its response. It collects what the edge learns for inner layers and the access log. It is
// their ResponseWriter.
type requestContext struct {
	http.ResponseWriter
	id        string
	request   *http.Request
	operation *operation // nil for paths outside the contract
	principal domain.Principal
	params    map[string]any // parameters, with the types of the contract
	key       string         // Idempotency-Key; may be empty

	unanswered func() // called if the server fails; may be nil

	status    int // 0 until the response starts
	written   int
	writeErr  error  // why the response was not sent completely
	truncated bool   // the server failed after the response had started
	failure   string // error.type of the response

	begun time.Time
	turn  time.Time   // when the request got its slot; only with traces
	span  traces.Span // empty until the caller is authenticated
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *requestContext {
	x, _ := ctx.Value(exchangeKey{}).(*requestContext) // set by observe
	return x
}

// principal returns the authenticated caller. It is zero in public operations.
func principal(ctx context.Context) domain.Principal { return exchangeOf(ctx).principal }

// acting returns the context that carries the request's data for the audit log.
func (e *edge) acting(ctx context.Context, x *requestContext) context.Context {
	if x.operation.public {
		return ctx
	}
	id, _ := uuid.Parse(x.id)
	act := audit.Act{
		Principal: x.principal,
		RequestID: id,
		Operation: x.operation.path,
		Named: func() []audit.Subject {
			return subjects(nil, x.params)
		},
	}
	if x.principal.IsPublic() && e.admitPublic != nil {
		act.Admit = func() bool { return e.admitPublic(x.principal.WorkspaceID) }
	}
	return audit.Acting(ctx, act)
}

// subjects adds the identifiers in parameters to found.
func subjects(found []audit.Subject, params map[string]any) []audit.Subject {
	add := func(kind string, value any) {
		text, _ := value.(string)
		if id, err := uuid.Parse(text); err == nil && audit.IsSubject(kind) {
			found = append(found, audit.Subject{Kind: kind, ID: id})
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

// Unwrap gives http.ResponseController access to the server's writer.
func (x *requestContext) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (x *requestContext) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
		if header := x.Header(); header.Get("Content-Type") == jsonType {
			header.Set("Content-Type", jsonUTF8)
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *requestContext) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n, err := x.ResponseWriter.Write(b)
	x.written += n
	if x.writeErr == nil {
		x.writeErr = err
	}
	return n, err
}

// observe assigns the request ID, recovers from panics, and writes the access log. The log never contains a body, a
// query string, an unknown path, or a header.
func (e *edge) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		x := &requestContext{
			ResponseWriter: w,
			id:             uuid.Must(uuid.NewV7()).String(),
			operation:      e.operations[r.URL.Path],
			begun:          start,
		}
		r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
		x.request = r
		header := w.Header()
		header[requestIDHeader] = []string{x.id}
		for _, always := range commonHeaders {
			header[always.name] = always.values
		}
		defer func() {
			thrown := recover()
			err, _ := thrown.(error)
			aborted := errors.Is(err, http.ErrAbortHandler)
			if thrown != nil && !aborted {
				e.fail(x, r, &panicked{value: thrown, stack: debug.Stack()})
			}
			if x.truncated {
				aborted, thrown = true, http.ErrAbortHandler
			}
			if x.unanswered != nil && x.status >= http.StatusInternalServerError &&
				r.Context().Err() == nil { // the client is still connected
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

// panicked is a recovered panic as an error.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

func (e *edge) log(x *requestContext, duration time.Duration) {
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
	e.logger.LogAttrs(x.span.NewContext(x.request.Context()), slog.LevelInfo, "request", attributes...)
}

// clientDisconnected reports whether an error means that the client has disconnected.
func (x *requestContext) clientDisconnected(err error) bool {
	return errors.Is(err, context.Canceled) && x.request.Context().Err() != nil
}

// logCause logs the cause that the caller does not see.
func (e *edge) logCause(x *requestContext, err error) {
	if x.writeErr != nil && errors.Is(err, x.writeErr) {
		e.logger.LogAttrs(x.request.Context(), slog.LevelInfo, "the client did not read the whole response",
			slog.String("request_id", x.id), slog.String("error", err.Error()))
		return
	}
	level := slog.LevelError
	if x.clientDisconnected(err) {
		level = slog.LevelInfo
	}
	e.logger.LogAttrs(
		x.span.NewContext(x.request.Context()),
		level,
		"request failed",
		slog.String("request_id", x.id),
		slog.String("error", err.Error()),
	)
}
