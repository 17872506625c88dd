package console

import (
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

func TestActText(t *testing.T) {
	t.Parallel()
	for operation, want := range map[string]string{
		"/access_codes/create":                  "Created access code",
		"/access_codes/unmanaged/update":        "Changed access codes unmanaged",
		"/deviceaccess/webhooks/rotate_secret":  "Rotated the secret of webhook",
		"/access_codes/pull_backup_access_code": "Access codes: pull backup access code",
		"/acs/users/suspend":                    "Suspended access system user",
		"accounts connect zwavejs":              "Connected account zwavejs",
		"keys revoke":                           "Revoked key",
		"serve":                                 "serve",
	} {
		if got := actText(operation); got != want {
			t.Errorf("%s: %q, want %q", operation, got, want)
		}
	}
	if got := eventText("acs_user.created"); got != "Access system user created" {
		t.Errorf("an event: %q", got)
	}
}

func TestSafeCell(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"": "", "plain": "plain", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\tx": "'\tx", "a=b": "a=b",
	} {
		if got := safeCell(cell); got != want {
			t.Errorf("%q: %q, want %q", cell, got, want)
		}
	}
}

func TestWithoutPINs_AtAnyDepth(t *testing.T) {
	t.Parallel()
	got, err := withoutPINs(
		[]byte(`{"code":"123456","from":{"code":"9876","name":"a"},"list":[{"pin":4711}],"n":12345678901234567890}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, pin := range []string{"123456\"", "9876", "4711"} {
		if strings.Contains(string(got), pin) {
			t.Errorf("a PIN is in %s", got)
		}
	}
	if !strings.Contains(string(got), `"n":12345678901234567890`) || !strings.Contains(string(got), `"name":"a"`) {
		t.Errorf("other values changed: %s", got)
	}
}

func TestNewSparkline_BarsFitAndSmallOnesShow(t *testing.T) {
	t.Parallel()
	var traffic overview.Traffic
	traffic.Succeeded[0], traffic.Failed[0], traffic.Failed[23] = 1000, 1000, 1
	s := newSparkline(traffic)
	if want := "M92 13h3v11h-3z"; s.succeeded != want {
		t.Errorf("successful: %s, want %s", s.succeeded, want)
	}
	if want := "M92 2h3v11h-3zM0 22h3v2h-3z"; s.failed != want {
		t.Errorf("failed: %s, want %s", s.failed, want)
	}
	if s.label != "Last 24 hours: 1000 successful and 1001 failed attempts" {
		t.Errorf("the label: %s", s.label)
	}
}

func TestQuoted_IsOneWordOfShell(t *testing.T) {
	t.Parallel()
	if got := quoted("it's $HOME"); got != `'it'\''s $HOME'` {
		t.Errorf("%s", got)
	}
}
