package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// verifyingNotFound adds a reason to 404s that some servers of this API send without one for missing resources. It does so
// only if the server proves that it is one by answering /workspaces/get. A 404 of anything else, such as a proxy that
// has lost its server, must not be mistaken for a deletion.
type verifyingNotFound struct {
	next http.RoundTripper
	// base is the path of the endpoint.
	base string
}

// universalOperations lists operations that every server has, so that their 404s are not about the path.
var universalOperations = []string{
	"/access_codes/get",
	"/access_codes/delete",
	"/webhooks/get",
	"/webhooks/delete",
	"/devices/get",
}

func (t verifyingNotFound) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusNotFound ||
		!slices.Contains(universalOperations, strings.TrimPrefix(req.URL.Path, t.base)) {
		return resp, err
	}
	return t.explain(req, resp)
}

// explain adds the reason if the response has none and the server proves itself.
func (t verifyingNotFound) explain(req *http.Request, resp *http.Response) (*http.Response, error) {
	body, err := peek(resp)
	if err != nil {
		return nil, err
	}
	if _, ok := decodeErrorResponse(resp, body); ok {
		return resp, nil
	}
	asked, err := t.next.RoundTrip(workspaceRequest(req, t.base))
	switch {
	case err != nil || isRetryable(asked, nil, true):
		return asked, err // still unknown: the retry of the request asks again
	case !namesWorkspace(asked):
		return resp, nil
	}
	var explained ErrorResponse
	explained.Error.Type, explained.Error.Message = "not_found", "The server does not know it"
	body, err = json.Marshal(explained)
	if err != nil {
		return nil, err
	}
	resp.Header.Set("Content-Type", "application/json")
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// workspaceRequest returns a request for the workspace, with the headers of req.
func workspaceRequest(req *http.Request, base string) *http.Request {
	const empty = "{}"
	question := req.Clone(req.Context())
	question.URL.Path, question.URL.RawPath = base+"/workspaces/get", ""
	question.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(empty)), nil }
	question.Body, question.ContentLength = io.NopCloser(strings.NewReader(empty)), int64(len(empty))
	return question
}

// namesWorkspace reports whether a response names a workspace.
func namesWorkspace(resp *http.Response) bool {
	var answer struct {
		Workspace struct {
			ID string `json:"workspace_id"`
		}
	}
	return resp.StatusCode == http.StatusOK && isJSON(resp) && json.NewDecoder(resp.Body).Decode(&answer) == nil &&
		answer.Workspace.ID != ""
}

// peek reads a body and restores it.
func peek(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}
