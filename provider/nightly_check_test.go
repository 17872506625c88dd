package provider

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// nightly runs the script of the guide, and is its output and whether it ended with 0.
func (w *workspace) nightly(script string) (said string, succeeded bool) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), "TF_CLI_ARGS_plan=-no-color", "CHECKPOINT_DISABLE=1")
	output, err := cmd.CombinedOutput()
	return plainly(string(output)), err == nil
}

func TestGuideToTheNightlyCheckNamesTheDoors(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s for the script of the guide", program)
		}
	}
	f := startFakeLocks(t)
	doors := strings.NewReplacer(fakeDevice, lockA, "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d12", lockB).
		Replace(guided(t, "nightly-check", `check "doors"`))
	script := guided(t, "nightly-check", "nightly.tfplan")
	w := newWorkspace(t, map[string]string{"main.tf": required + f.config(doors)})
	w.expect(true, "apply", "-auto-approve")
	onB := func(change func(*fakeCode)) {
		f.do(func() {
			for _, code := range f.codes {
				if code.device == lockB {
					change(code)
				}
			}
		})
	}

	if said, succeeded := w.nightly(script); !succeeded || !strings.Contains(said, "No changes") {
		t.Errorf("as declared: %v\n%s", succeeded, said)
	}
	onB(func(code *fakeCode) {
		code.errors = []map[string]any{{"error_code": "device_offline", "message": "The lock is offline."}}
	})
	said, succeeded := w.nightly(script)
	expectSaid(t, "a lock is offline", said, "These doors are not as declared: back (device_offline).",
		"These doors are offline: back.", "No changes")
	if succeeded {
		t.Error("a lock is offline, and the check succeeds")
	}
	onB(func(code *fakeCode) { code.errors, code.name = nil, "Meddler" })
	said, succeeded = w.nightly(script)
	expectSaid(t, "a code was changed", said, "Meddler", "1 to change")
	if succeeded {
		t.Error("a code was changed, and the check succeeds")
	}
	if _, err := os.Stat(w.dir + "/nightly.tfplan"); err == nil {
		t.Error("the plan with its PINs is left")
	}
}
