package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// trusting gives a reason to a 404 without one, as some servers of this API answer for what is gone. It does so
// only if the server shows that it is one, by answering /workspaces/get right then: from anything else, such as a proxy whose
// server is away, such a 404 must not be mistaken for a deletion.
type trusting struct {
	next http.RoundTripper
	base string // the path of the endpoint
}

// everywhere are the operations that every server has, so that a 404 of them is not about the path.
var everywhere = []string{"/access_codes/get", "/access_codes/delete", "/webhooks/get", "/webhooks/delete", "/devices/get"}

func (t trusting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusNotFound || !slices.Contains(everywhere, strings.TrimPrefix(req.URL.Path, t.base)) {
		return resp, err
	}
	return t.explain(req, resp)
}

// explain gives the reason, if there is none and the server is to be trusted.
func (t trusting) explain(req *http.Request, resp *http.Response) (*http.Response, error) {
	body, err := peek(resp)
	if err != nil {
		return nil, err
	}
	if _, ok := refusal(resp, body); ok {
		return resp, nil
	}
	asked, err := t.next.RoundTrip(asksForWorkspace(req, t.base))
	switch {
	case err != nil || worthRepeating(asked, nil, true):
		return asked, err // nobody knows by now: the request is repeated, and this asked again
	case !names(asked):
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

// asksForWorkspace is a request for the workspace of the key, by whoever makes another request.
func asksForWorkspace(req *http.Request, base string) *http.Request {
	const empty = "{}"
	question := req.Clone(req.Context())
	question.URL.Path, question.URL.RawPath = base+"/workspaces/get", ""
	question.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(empty)), nil }
	question.Body, question.ContentLength = io.NopCloser(strings.NewReader(empty)), int64(len(empty))
	return question
}

// names says whether an answer names a workspace.
func names(resp *http.Response) bool {
	var answer struct {
		Workspace struct {
			ID string `json:"workspace_id"`
		}
	}
	return resp.StatusCode == http.StatusOK && isJSON(resp) && json.NewDecoder(resp.Body).Decode(&answer) == nil && answer.Workspace.ID != ""
}

// peek reads a body and puts it back.
func peek(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}
