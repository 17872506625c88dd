package provider

import (
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// logged writes each try of a request to Terraform's log: what was asked and how it ended. Bodies hold PINs
// and secrets, so none is ever written; the credential is masked should it turn up in an error.
type logged struct{ next http.RoundTripper }

func (t logged) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if credential := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "); credential != "" {
		ctx = tflog.MaskLogStrings(ctx, credential)
	}
	start := time.Now()
	resp, err := t.next.RoundTrip(req)
	fields := map[string]any{"method": req.Method, "path": req.URL.Path, "milliseconds": time.Since(start).Milliseconds()}
	if err != nil {
		fields["error"] = err.Error()
		tflog.Warn(ctx, "request failed", fields)
		return resp, err
	}
	fields["status"], fields["request_id"] = resp.StatusCode, resp.Header.Get("seam-request-id")
	tflog.Debug(ctx, "request answered", fields)
	return resp, nil
}
