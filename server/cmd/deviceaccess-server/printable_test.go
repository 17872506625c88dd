package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Text that others choose, such as the names of a workspace, is printed on one line and without control characters.
func TestOutput_HostileNames(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	url, token := cloud(t)
	const hostile, inJSON = "\x1b[2J\x1b]0;x\a\nFAKE-ROW\t\u202e\u009b1m", `\u001b[2J\u001b]0;x\u0007\nFAKE-ROW\t\u202e\u009b1m`
	r, _ := p.serve("--sandbox-speed", "20")
	workspace := p.ok("workspaces", "create", "--company", hostile, hostile)
	key := p.ok("keys", "create", "--workspace", workspace, "--name", hostile)
	account := p.ok(
		"accounts",
		"connect",
		"devicecloud",
		"--url",
		url,
		"--token-file",
		p.file("token", token),
		"--workspace",
		workspace,
	)
	post := func(key, path, body string, out any) {
		t.Helper()
		if status := p.post(r, key, path, body, out); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
	}
	post(
		key,
		"/connected_accounts/update",
		fmt.Sprintf(`{"connected_account_id":%q,"display_name":"%s"}`, account, inJSON),
		nil,
	)
	var locks struct {
		Devices []struct {
			ID string `json:"device_id"`
		} `json:"devices"`
	}
	p.until("the sandbox has its lock", func() bool {
		post(r.APIKey, "/devices/list", `{"device_type":"august_lock"}`, &locks)
		return len(locks.Devices) == 1
	})
	post(
		r.APIKey,
		"/access_codes/create",
		fmt.Sprintf(`{"device_id":%q,"code":"2580","name":"%s","sync":true}`, locks.Devices[0].ID, inJSON),
		nil,
	)
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
	for rows, args := range map[int][][]string{
		4: {
			{"accounts", "list"},
			{"workspaces", "list"},
			{"keys", "list"},
			{"audit", "--actor", hostile},
			{"sandbox", "codes", "--endpoint", r.URL, locks.Devices[0].ID},
		},
		9: {
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
			{"accounts", "disconnect", account},
			{"keys", "create", "--workspace", hostile},
			{"workspaces", "create", "Home", hostile},
			{hostile},
		},
	} {
		for _, args := range args {
			out := shows(args...)
			if strings.ContainsAny(out, "\x1b\a\t\u202e\u009b") || strings.Contains(out, "\nFAKE-ROW") ||
				strings.Count(out, "\n") > rows {
				t.Errorf("%q shows %q", args, out)
			}
			if !strings.Contains(out, `FAKE-ROW`) {
				t.Errorf("%q shows no name: %q", args, out)
			}
		}
	}
}

func TestCell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                     "",
		"Jane's \"house\" é €": "Jane's \"house\" é €",
		"a\nb":                 `"a\nb"`,
		"a\tb":                 `"a\tb"`,
		"\x1b[2J\"":            `"\x1b[2J\""`,
		"\u009b1m":             `"\u009b1m"`,
		"\u202eabc":            `"\u202eabc"`,
		"a\xff":                `"a\xff"`,
		"a\u2028b":             `"a\u2028b"`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
	if got, want := printableLines("one\ntwo\x1b[2J\rthree\x7f"), `one`+"\n"+`two\x1b[2J\rthree\x7f`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
