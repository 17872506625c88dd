package secretscan

import (
	"bytes"
	"io"
	"net/http"
)

// RoundTripper learns from a client's requests and successful responses, as Watch does at the server. It is for servers
// in other processes.
func (l *Ledger) RoundTripper(next http.RoundTripper) http.RoundTripper { return &hearing{l, next} }

type hearing struct {
	ledger *Ledger
	next   http.RoundTripper
}

func (h *hearing) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil && r.GetBody != nil { // leaves the body that is sent alone
		copied, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		defer copied.Close() // in memory
		if body, err = io.ReadAll(copied); err != nil {
			return nil, err
		}
	}
	h.ledger.learnRequest(r, body)
	res, err := h.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(res.Body)
	_ = res.Body.Close() // fully read, or useless
	if err != nil {
		return nil, err
	}
	if res.StatusCode < http.StatusBadRequest {
		h.ledger.learnJSON(answer)
	}
	res.Body = io.NopCloser(bytes.NewReader(answer))
	return res, nil
}
