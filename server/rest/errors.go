package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/health"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
)

// Error types of the edge.
const (
	invalidInput       = "invalid_input"
	invalidQueryParams = "invalid_query_params"
	// routeNotFound differs from "not_found", which clients take for the absence of an access code.
	routeNotFound = "route_not_found"
)

// failure is an error response.
type failure struct {
	status  int
	kind    string // error.type
	message string
	data    map[string]any
	issues  []issue
	methods []string // allowed methods, for the header Allow

	retryAfter int // seconds, for the header Retry-After
}

// statusClientClosedRequest is the status of requests that the client abandoned, in the log and the metrics. It is
// nginx's number.
const statusClientClosedRequest = 499

func (f *failure) Error() string { return f.kind + ": " + f.message }

var statuses = map[domain.Kind]int{
	domain.Invalid:      http.StatusBadRequest,
	domain.NotFound:     http.StatusNotFound,
	domain.Conflict:     http.StatusConflict,
	domain.Unauthorized: http.StatusUnauthorized,
	domain.Forbidden:    http.StatusForbidden,
	domain.Unavailable:  http.StatusServiceUnavailable,
	domain.TooMany:      http.StatusTooManyRequests,

	domain.Mismatch: http.StatusUnprocessableEntity,
}

// failureOf converts errors to responses. Unexpected errors become a 500 without their reason.
func failureOf(err error) *failure {
	var known *failure
	var dom *domain.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &dom) && statuses[dom.Kind] != 0:
		return failureOfDomain(dom)
	case errors.Is(err, admission.ErrBusy):
		return tooBusy()
	case errors.As(err, &tooLarge):
		message := fmt.Sprintf("The body is over %d bytes", tooLarge.Limit)
		return &failure{status: http.StatusRequestEntityTooLarge, kind: "payload_too_large", message: message}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), health.WaitedTooLong(err):
		return unavailable("The request was not finished in time; try again")
	case health.DatabaseUnavailable(err):
		return unavailable("The service is temporarily unavailable, because its database is; try again")
	}
	return &failure{
		status:  http.StatusInternalServerError,
		kind:    "internal_server_error",
		message: "Something went wrong inside the service; the log has the reason under this request_id",
	}
}

// unavailable returns the failure of a request that can succeed later.
func unavailable(message string) *failure {
	return &failure{
		status:     http.StatusServiceUnavailable,
		kind:       "service_unavailable",
		message:    message,
		retryAfter: 1,
	}
}

func failureOfDomain(err *domain.Error) *failure {
	f := &failure{
		status:  statuses[err.Kind],
		kind:    err.Type,
		message: err.Message,
		data:    err.Data,
	}
	if err.Type == idempotency.KeyInUse || err.Kind == domain.TooMany || err.Kind == domain.Unavailable {
		f.retryAfter = 1
	}
	if err.Type != invalidInput {
		return f
	}
	for _, err := range append([]*domain.Error{err}, err.Also...) {
		var path []string
		if err.Field != "" {
			path = strings.Split(err.Field, ".")
		}
		f.issues = append(f.issues, issue{path: path, message: err.Message})
	}
	if len(f.issues) > 1 || err.Message == required {
		f.message = invalid(f.issues).message
	}
	return f
}

// required is zod's message for a missing parameter.
const required = "Required"

func invalid(issues []issue) *failure {
	all := len(issues)
	issues = issues[:min(all, maxIssues)]
	f := &failure{status: http.StatusBadRequest, kind: invalidInput, issues: issues}
	sentences := make([]string, len(issues))
	for i, issue := range issues {
		sentences[i] = sentence(issue)
	}
	f.message = strings.Join(sentences, ", ")
	if all > 1 {
		f.message = fmt.Sprintf("%d Input Errors: %s", all, f.message)
	}
	return f
}

func sentence(i issue) string {
	switch path := strings.Join(i.path, "."); {
	case path == "":
		return i.message
	case i.message == required:
		return path + " is required"
	default:
		return i.message + ` for "` + path + `"`
	}
}

// validationErrors arranges issues like error.format of zod.
func validationErrors(issues []issue) map[string]any {
	if len(issues) == 0 {
		return nil
	}
	root := map[string]any{"_errors": []string{}}
	for _, issue := range issues {
		at := root
		for _, name := range issue.path {
			inner, ok := at[name].(map[string]any)
			if !ok {
				inner = map[string]any{"_errors": []string{}}
				at[name] = inner
			}
			at = inner
		}
		messages, _ := at["_errors"].([]string)
		at["_errors"] = append(messages, issue.message)
	}
	return root
}

// fail responds with an error, and logs the cause that the caller does not see.
func (e *edge) fail(w http.ResponseWriter, r *http.Request, err error) {
	x, f := exchangeOf(r.Context()), failureOf(err)
	if f.status >= http.StatusInternalServerError {
		e.logCause(x, err)
	}
	if x.status != 0 { // the response has already started
		if x.failure = f.kind; f.status < http.StatusInternalServerError {
			e.logCause(x, err)
		}
		x.truncated = x.writeErr == nil // a truncated response must not look complete
		return
	}
	if f.status >= http.StatusInternalServerError && x.clientDisconnected(err) {
		f.status = statusClientClosedRequest
	}
	body, err := json.Marshal(api.ErrorResponse{Error: api.Error{
		Type:             f.kind,
		Message:          f.message,
		Data:             f.data,
		ValidationErrors: validationErrors(f.issues),
		RequestID:        x.id,
	}})
	if err != nil {
		e.fail(w, r, fmt.Errorf("write the error %s: %w", f.kind, err))
		return
	}
	x.failure = f.kind
	header := w.Header()
	header.Set("Content-Type", jsonUTF8)
	if f.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	switch f.status {
	case http.StatusUnauthorized:
		header.Set("Www-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		header.Set("Allow", strings.Join(f.methods, ", "))
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(append(body, '\n'))
}

func (e *edge) notFound(w http.ResponseWriter, r *http.Request) {
	e.fail(w, r, &failure{
		status:  http.StatusNotFound,
		kind:    routeNotFound,
		message: "There is nothing at this path; GET /openapi.json tells what there is",
	})
}

func methodNotAllowed(methods []string) *failure {
	message := fmt.Sprintf("only %s accepted", strings.Join(methods, ","))
	return &failure{
		status:  http.StatusMethodNotAllowed,
		kind:    "method_not_allowed",
		message: message,
		methods: methods,
	}
}
