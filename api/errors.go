package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"mime"
	"net/http"
	"regexp"
	"strings"
)

// ResponseError is an unsuccessful response, or one that violates the contract. It contains no credential and no PIN.
type ResponseError struct {
	// Status is the HTTP status.
	Status int
	// Type is the stable name of the reason, such as webhook_not_found. It is empty if the response does not come
	// from a server of this API, such as an HTML page of a proxy.
	Type string
	// Message is written for people.
	Message string
	// RequestID identifies the request in the server's log. It may be empty.
	RequestID string
	// Fields has the errors by parameter.
	Fields map[string][]string
	// ManagedAccessCodeID and UnmanagedAccessCodeID name the code that has the PIN, for duplicate_access_code. Both may
	// be empty.
	ManagedAccessCodeID, UnmanagedAccessCodeID string
	// InDoubt reports whether an earlier try may have been carried out.
	InDoubt bool

	// CredentialFrom is copied from Config. It may be empty.
	CredentialFrom string
}

// Error returns the message, with the status, type and request ID.
func (e *ResponseError) Error() string {
	var about []string
	if e.Status != http.StatusOK {
		about = append(about, fmt.Sprintf("HTTP %d", e.Status))
	}
	if e.Type != "" {
		about = append(about, e.Type)
	}
	if e.RequestID != "" {
		about = append(about, "request "+e.RequestID)
	}
	if len(about) == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s (%s)", strings.TrimSuffix(e.Message, "."), strings.Join(about, ", "))
}

// StatusOf returns the HTTP status of a *ResponseError, or 0 for other errors.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*ResponseError](err); ok {
		return e.Status
	}
	return 0
}

// routeNotFound is the type of a 404 about the path itself, as this project's server returns it.
const routeNotFound = "route_not_found"

// IsNotFound reports whether the resource does not exist. A 404 about the path or from another service does not
// count: it comes from a wrong endpoint, and must not be mistaken for a deletion. Type trusting adds a reason to the
// 404s of API servers that send none.
func IsNotFound(err error) bool {
	e, ok := errors.AsType[*ResponseError](err)
	return ok && e.Status == http.StatusNotFound && e.Type != "" && e.Type != routeNotFound
}

// IsNoRoute reports whether the server lacks the operation.
func IsNoRoute(err error) bool {
	e, ok := errors.AsType[*ResponseError](err)
	return ok && (e.Status == http.StatusNotFound && (e.Type == "" || e.Type == routeNotFound) ||
		e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented)
}

// IsDenied reports whether the credential is invalid or not allowed to call the operation.
func IsDenied(err error) bool {
	status := StatusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

func isJSON(resp *http.Response) bool {
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return mediaType == "application/json"
}

func responseError(resp *http.Response, body []byte) *ResponseError {
	e := &ResponseError{
		Status:         resp.StatusCode,
		RequestID:      resp.Header.Get("seam-request-id"),
		InDoubt:        isInDoubt(resp),
		CredentialFrom: credentialFrom(resp),
	}
	if answer, ok := decodeErrorResponse(resp, body); ok {
		e.Type, e.Message = answer.Error.Type, answer.Error.Message
		e.Fields = fieldErrors(answer.Error.ValidationErrors)
		e.ManagedAccessCodeID, _ = answer.Error.Data["managed_access_code_id"].(string)
		e.UnmanagedAccessCodeID, _ = answer.Error.Data["unmanaged_access_code_id"].(string)
	} else {
		e.Message = describeForeignResponse(resp, body)
	}
	e.Message = redactRequest(resp.Request, e.Message)
	for _, problems := range e.Fields {
		for i := range problems {
			problems[i] = redactRequest(resp.Request, problems[i])
		}
	}
	return e
}

// credentialFromKey is the context key of Config.CredentialFrom.
type credentialFromKey struct{}

func credentialFrom(resp *http.Response) string {
	if resp.Request == nil {
		return ""
	}
	from, _ := resp.Request.Context().Value(credentialFromKey{}).(string)
	return from
}

// decodeErrorResponse decodes an error of this API from a body.
func decodeErrorResponse(resp *http.Response, body []byte) (answer ErrorResponse, ok bool) {
	return answer, isJSON(resp) && json.Unmarshal(body, &answer) == nil && answer.Error.Type != ""
}

// fieldErrors flattens validation_errors, {"url": {"_errors": ["…"]}}. Requests are flat, so one level suffices.
func fieldErrors(validation map[string]any) map[string][]string {
	fields := map[string][]string{}
	for name, value := range validation {
		nested, _ := value.(map[string]any)
		problems, _ := nested["_errors"].([]any)
		for _, problem := range problems {
			if text, ok := problem.(string); ok {
				fields[name] = append(fields[name], text)
			}
		}
	}
	return fields
}

var (
	markup = regexp.MustCompile(`(?s)<(script|style).*?</(script|style)>|<[^>]*>`)
	blanks = regexp.MustCompile(`[\s\pC]+`)
)

// describeForeignResponse describes a response that does not come from this API by the start of its text.
func describeForeignResponse(resp *http.Response, body []byte) string {
	status := fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	if resp.StatusCode/100 == 3 {
		return fmt.Sprintf("the server redirects (%s); set the endpoint to the address it redirects to", status)
	}
	text := html.UnescapeString(markup.ReplaceAllString(string(body), " "))
	text = strings.TrimSpace(blanks.ReplaceAllString(strings.ToValidUTF8(text, "?"), " "))
	if short := []rune(text); len(short) > 200 {
		text = string(short[:200]) + "…"
	}
	if text == "" {
		return fmt.Sprintf("the server answered %s without saying why", status)
	}
	return fmt.Sprintf("the server answered %s, which is not an answer of this API: %s", status, text)
}
