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

// ResponseError is an answer that is no success, or that is not of this API at all (Type is empty then, as
// for a page of HTML from a proxy). It holds no credential and no PIN of the request.
type ResponseError struct {
	Status    int                 // of HTTP
	Type      string              // stable, such as webhook_not_found
	Message   string              // for people
	RequestID string              // of the answer, to be found in the server's log; may be empty
	Fields    map[string][]string // parameter → what is wrong with it
	InDoubt   bool                // whether a try before this one may have been carried out

	CredentialFrom string // as Config has it; may be empty
}

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

// StatusOf is the HTTP status of an error that a server answered with, else 0.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*ResponseError](err); ok {
		return e.Status
	}
	return 0
}

// routeNotFound is the type of a 404 about the path itself, as this project's server answers it.
const routeNotFound = "route_not_found"

// IsNotFound says that the server knows no such thing. A 404 about the path, or one that is not of this API, does
// not count: it comes from a wrong endpoint, and must not be mistaken for a deletion. What servers of this API answer
// without a reason has been given one by then (see trusting).
func IsNotFound(err error) bool {
	e, ok := errors.AsType[*ResponseError](err)
	return ok && e.Status == http.StatusNotFound && e.Type != "" && e.Type != routeNotFound
}

// IsNoRoute says that the server does not have the operation.
func IsNoRoute(err error) bool {
	e, ok := errors.AsType[*ResponseError](err)
	return ok && (e.Status == http.StatusNotFound && (e.Type == "" || e.Type == routeNotFound) ||
		e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented)
}

// IsDenied says that the credential is not accepted, or may not do this.
func IsDenied(err error) bool {
	status := StatusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

func isJSON(resp *http.Response) bool {
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return mediaType == "application/json"
}

func responseError(resp *http.Response, body []byte) *ResponseError {
	e := &ResponseError{Status: resp.StatusCode, RequestID: resp.Header.Get("seam-request-id"), InDoubt: isInDoubt(resp), CredentialFrom: credentialFrom(resp)}
	if answer, ok := refusal(resp, body); ok {
		e.Type, e.Message = answer.Error.Type, answer.Error.Message
		e.Fields = fieldErrors(answer.Error.ValidationErrors)
	} else {
		e.Message = foreignAnswer(resp, body)
	}
	e.Message = redactRequest(resp.Request, e.Message)
	for _, problems := range e.Fields {
		for i := range problems {
			problems[i] = redactRequest(resp.Request, problems[i])
		}
	}
	return e
}

// credentialFromKey is where the context of a request has where its credential comes from.
type credentialFromKey struct{}

func credentialFrom(resp *http.Response) string {
	if resp.Request == nil {
		return ""
	}
	from, _ := resp.Request.Context().Value(credentialFromKey{}).(string)
	return from
}

// refusal is the error that a body holds, if it is one of this API.
func refusal(resp *http.Response, body []byte) (answer ErrorResponse, ok bool) {
	return answer, isJSON(resp) && json.Unmarshal(body, &answer) == nil && answer.Error.Type != ""
}

// fieldErrors flattens validation_errors, {"url": {"_errors": ["…"]}}, one level deep: requests are flat.
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

// foreignAnswer describes an answer that is not of this API: the beginning of its text.
func foreignAnswer(resp *http.Response, body []byte) string {
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
