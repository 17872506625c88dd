package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
)

// trusting gives a reason to a 404 without one, as some servers of this API answer for what is gone. It does so
// only once the server has shown in this process that it is one, by answering /workspaces/get: from anything else
// such a 404 says that the endpoint is wrong, and must not be mistaken for a deletion.
type trusting struct {
	next   http.RoundTripper
	mu     sync.Mutex
	proven bool
}

const proof = "/workspaces/get"

// everywhere are the operations that every server has, so that a 404 of them is not about the path.
var everywhere = []string{"/access_codes/get", "/access_codes/delete", "/webhooks/get", "/webhooks/delete", "/devices/get"}

func (t *trusting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(req.URL.Path, proof) {
		return resp, t.note(resp)
	}
	for _, operation := range everywhere {
		base, known := strings.CutSuffix(req.URL.Path, operation)
		if known && resp.StatusCode == http.StatusNotFound {
			return t.explain(req, resp, base)
		}
	}
	return resp, nil
}

// explain gives the reason, if there is none and the server is to be trusted.
func (t *trusting) explain(req *http.Request, resp *http.Response, base string) (*http.Response, error) {
	body, err := peek(resp)
	if err != nil {
		return nil, err
	}
	if _, ok := refusal(resp, body); ok || !t.trusts(req, base) {
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

// trusts says whether the server is one of this API, and asks it for the workspace if that is not known yet.
func (t *trusting) trusts(req *http.Request, base string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.proven {
		return true
	}
	question := req.Clone(req.Context())
	question.URL.Path, question.URL.RawPath = base+proof, ""
	question.Body, question.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
	question.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("{}")), nil }
	resp, err := t.next.RoundTrip(question)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	t.proven = names(resp)
	return t.proven
}

// note takes an answer about the workspace for the proof that it may be.
func (t *trusting) note(resp *http.Response) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	body, err := peek(resp)
	if err != nil {
		return err
	}
	copied := *resp
	copied.Body = io.NopCloser(bytes.NewReader(body))
	t.proven = t.proven || names(&copied)
	return nil
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
