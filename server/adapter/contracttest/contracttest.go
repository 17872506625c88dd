// Package contracttest judges both sides of a test by an OpenAPI description of a vendor's API: what an adapter sends,
// and what the vendor's fake answers. It must not know a vendor.
package contracttest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// Deviates is a response header with which a fake marks a response that intentionally violates the description, such as
// the page of a proxy. The judge removes it.
const Deviates = "Test-Deviates"

// Judge compares requests and responses with a description.
type Judge struct {
	router routers.Router
}

// judges are shared, because reading a description takes a while.
var judges sync.Map // func() (*Judge, error) by description

// Open reads a description. Its servers must be absent or "/".
func Open(t testing.TB, description []byte) *Judge {
	t.Helper()
	open := sync.OnceValues(func() (*Judge, error) { return read(description) })
	once, _ := judges.LoadOrStore(string(description), open)
	j, err := once.(func() (*Judge, error))()
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func read(description []byte) (*Judge, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(description)
	if err != nil {
		return nil, fmt.Errorf("read the description: %w", err)
	}
	if err := doc.Validate(loader.Context); err != nil {
		return nil, fmt.Errorf("the description is invalid: %w", err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("the paths of the description: %w", err)
	}
	return &Judge{router: router}, nil
}

// Handler forwards requests to the fake, and reports violations of both sides as errors of the test. Routes of the fake
// for tests must not pass through it.
func (j *Judge) Handler(t testing.TB, fake http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client ended the request
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		input, err := j.input(r)
		if err != nil {
			t.Errorf("the adapter sends %s %s, which the description lacks: %v", r.Method, r.URL.Path, err)
			http.NotFound(w, r)
			return
		}
		if err := openapi3filter.ValidateRequest(r.Context(), input); err != nil {
			t.Errorf("the adapter's request %s %s violates the description: %s", r.Method, r.URL.Path, redact(err))
		}
		if unknown := unknownFields(input.Route, r, body); len(unknown) > 0 {
			t.Errorf("the adapter's request %s %s has fields that the description lacks: %q",
				r.Method, r.URL.Path, unknown)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		fake.ServeHTTP(answer, r)
		if answer.Header().Get(Deviates) == "" {
			j.checkResponse(t, input, answer)
		}
		answer.Header().Del(Deviates)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the client may have gone
	})
}

func (j *Judge) input(r *http.Request) (*openapi3filter.RequestValidationInput, error) {
	route, params, err := j.router.FindRoute(r)
	if err != nil {
		return nil, err
	}
	return &openapi3filter.RequestValidationInput{
		Request:    r,
		PathParams: params,
		Route:      route,
		Options: &openapi3filter.Options{
			AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
			IncludeResponseStatus: true,
			MultiError:            true,
		},
	}, nil
}

func (j *Judge) checkResponse(
	t testing.TB, input *openapi3filter.RequestValidationInput, answer *httptest.ResponseRecorder,
) {
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input,
		Status:                 answer.Code,
		Header:                 answer.Header(),
		Options:                input.Options,
	}
	response.SetBodyBytes(answer.Body.Bytes())
	if err := openapi3filter.ValidateResponse(input.Request.Context(), response); err != nil {
		t.Errorf("the fake's response %d of %s %s violates the description: %s",
			answer.Code, input.Request.Method, input.Route.Path, redact(err))
	}
}

const form = "application/x-www-form-urlencoded"

// unknownFields returns the names in the query and in a form that the description lacks. openapi3filter ignores them.
func unknownFields(route *routers.Route, r *http.Request, body []byte) (unknown []string) {
	known := map[string]bool{}
	for _, params := range []openapi3.Parameters{route.PathItem.Parameters, route.Operation.Parameters} {
		for _, p := range params {
			known[p.Value.Name] = true
		}
	}
	sent := r.URL.Query()
	if b := route.Operation.RequestBody; b != nil && b.Value.Content[form] != nil {
		for name := range b.Value.Content[form].Schema.Value.Properties {
			known[name] = true
		}
		fields, err := url.ParseQuery(string(body))
		if err != nil {
			return []string{"(not a form)"}
		}
		maps.Copy(sent, fields)
	}
	for name := range sent {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

var digits = regexp.MustCompile(`[0-9]{4,}`)

// redact replaces what may be a PIN.
func redact(err error) string { return digits.ReplaceAllString(err.Error(), "****") }
