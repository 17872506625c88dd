package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Text that others choose, such as the messages of a vendor, is printed on one line and without control characters.
func TestOutput_HostileTexts(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	const hostile, inJSON = "\x1b[2J\x1b]0;x\a\nFAKE-ROW\t\u202e\u009b1m", `\u001b[2J\u001b]0;x\u0007\nFAKE-ROW\t\u202e\u009b1m`
	p.serve()
	workspace := p.ok("workspaces", "create", "Home")
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error_code":"INVALID_REQUEST","message":"%s"}`, inJSON)
	}))
	t.Cleanup(vendor.Close)

	shows := func(args ...string) string {
		t.Helper()
		out, err := p.run(args...)
		if err != nil {
			out += err.Error()
		}
		return out
	}
	for _, args := range [][]string{
		{
			"accounts",
			"connect",
			"devicecloud",
			"--url",
			vendor.URL,
			"--token-file",
			p.file("any", "x"),
			"--workspace",
			workspace,
		},
		{"keys", "create", "--workspace", hostile},
		{"workspaces", "create", "Home", hostile},
		{hostile},
		{"workspaces", "create", hostile},
		{"workspaces", "create", "--company", hostile, "Home"},
		{"keys", "create", "--workspace", workspace, "--name", hostile},
	} {
		out := shows(args...)
		if strings.ContainsAny(out, "\x1b\a\t\u202e\u009b") || strings.Contains(out, "\nFAKE-ROW") ||
			strings.Count(out, "\n") > 9 {
			t.Errorf("%q shows %q", args, out)
		}
		if !strings.Contains(out, "FAKE-ROW") && !strings.Contains(out, "contains a control character") {
			t.Errorf("%q shows no name: %q", args, out)
		}
	}
}
