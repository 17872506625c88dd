package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// maxBody is the maximum size of a request body in bytes.
const maxBody = 1 << 20

// requestTimeout bounds the time for a request, including the database. Clients do not wait longer.
const requestTimeout = 50 * time.Second

// canonicalBody is the body that the generated handlers read.
type canonicalBody struct{ bytes.Reader }

func (*canonicalBody) Close() error { return nil }

// canonical converts every form of a request to a POST with a validated JSON body that includes defaults. Paths
// outside the contract pass through.
func (e *edge) canonical(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		if x.operation == nil {
			next.ServeHTTP(w, r)
			return
		}
		if e.traces != nil {
			x.turn = time.Now()
		}
		body, err := e.admit(x, r)
		if err != nil {
			e.fail(w, r, err)
			return
		}
		ctx, cancel := context.WithTimeout(e.acting(x.span.NewContext(r.Context()), x), requestTimeout)
		defer cancel()
		request := *r.WithContext(ctx) // the log needs the original method
		request.Method = http.MethodPost
		request.ContentLength = int64(len(body))
		request.Body = &canonicalBody{*bytes.NewReader(body)}
		next.ServeHTTP(w, &request)
	})
}

// admit runs the checks in the order that clients rely on, and returns the canonical body.
func (e *edge) admit(x *requestContext, r *http.Request) ([]byte, error) {
	err := e.authenticateCaller(x, r)
	if err != nil {
		return nil, err
	}
	if !x.operation.allowsMethod(r.Method) {
		return nil, methodNotAllowed(x.operation.methods)
	}
	if x.key, err = keyOf(x.operation, r.Header); err != nil {
		return nil, err
	}
	given, err := readBody(x, r)
	if err != nil {
		return nil, err
	}
	params, err := parseQuery(r.URL.RawQuery, x.operation.body)
	if err != nil {
		return nil, err
	}
	maps.Copy(params, given)
	body, issues := canonical(x.operation.body, params, true)
	if slices.ContainsFunc(issues, func(i issue) bool { return !i.domain }) {
		return nil, invalid(issues)
	}
	if x.principal.Kind == domain.PublishableKey {
		if err := e.countRepeat(x, x.principal.CredentialID.String(), "", string(body)); err != nil {
			return nil, err
		}
	}
	x.params = params
	return body, nil
}

// readBody reads the parameters of the body, or nil if it is absent, empty or null.
func readBody(x *requestContext, r *http.Request) (map[string]any, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if r.ContentLength > maxBody {
		return nil, &http.MaxBytesError{Limit: maxBody}
	}
	measured := &limitedJSON{Reader: http.MaxBytesReader(x.ResponseWriter, r.Body, maxBody)}
	whole, err := readWhole(measured, r.ContentLength)
	if err != nil && !errors.Is(err, errExcess) {
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			return nil, tooLarge
		}
		if errors.Is(err, admission.ErrBusy) {
			return nil, tooBusy()
		}
		return nil, invalidJSON("Could not read the body to its end")
	}
	raw := bytes.TrimSpace(whole)
	if len(raw) == 0 {
		return nil, nil
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !isJSON(r.Header.Get("Content-Type")) {
		message := fmt.Sprintf("%s requests must have Content-Type header with %q", r.Method, jsonType)
		return nil, &failure{status: http.StatusBadRequest, kind: "invalid_content_type", message: message}
	}
	if measured.problem != "" {
		return nil, invalidJSON(measured.problem)
	}
	return parseBody(raw)
}

func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), jsonType)
}

// parseBody parses a JSON object whose size has been checked. The last of repeated names wins.
func parseBody(raw []byte) (map[string]any, error) {
	if !utf8.Valid(raw) {
		return nil, invalidJSON("The body is not UTF-8")
	}
	var body any
	if err := json.Unmarshal(raw, &body); err != nil {
		// The decoder's message quotes the body, which may contain a PIN.
		if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
			return nil, invalidJSON(fmt.Sprintf("The body is not JSON: syntax error at byte %d", syntax.Offset))
		}
		return nil, invalidJSON("The body is not JSON: a number is too large")
	}
	switch body := body.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return body, nil
	default:
		return nil, invalid([]issue{{message: "Expected object, received " + typeOf(body)}})
	}
}

func invalidJSON(message string) *failure {
	return &failure{status: http.StatusBadRequest, kind: "invalid_json", message: message}
}
