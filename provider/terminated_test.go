package provider

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// expectGone waits until a process that is no child of ours has ended. Who takes it over may leave it as a zombie.
func expectGone(t *testing.T, what string, pid int) {
	t.Helper()
	apptest.Until(t, what, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		return err != nil || strings.HasPrefix(rest, "Z") || !strings.Contains(string(stat), "(terraform-provi)")
	})
}

func TestServerTerminatedApplyLosesNoCode(t *testing.T) {
	t.Parallel()
	srv := apptest.Start(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	lock := srv.Lock(t, device)
	const pin = "904716"
	lock.Control(t, http.MethodPost, "/offline", nil)
	apptest.Until(t, "the lock is offline", func() bool { return !deviceOnline(t, srv, device) })
	w := newWorkspace(
		t,
		map[string]string{"main.tf": required + onServer(srv, accessCodeOn(device, `code = "`+pin+`"`))},
	)

	apply := w.start("apply", "-auto-approve")
	apptest.Until(t, "the lock is waited for", func() bool { return srv.Count("/action_attempts/get") > 0 })
	plugin := pluginOf(t, apply.cmd.Process.Pid)
	apply.terminate()
	if err := apply.cmd.Wait(); err == nil ||
		!strings.Contains(apply.text(), "interrupted while it waited for the lock") {
		t.Errorf("the apply ends with %v and says\n%s", err, apply.text())
	}
	if state := w.read(
		"show",
		"-json",
	); !strings.Contains(state, managedOn(t, srv, device)[0].AccessCodeID) ||
		strings.Contains(state, `"tainted":true`) {
		t.Errorf("the code is not in the state, or tainted: %s", state)
	}
	expectGone(t, "the provider ends with Terraform", plugin)

	lock.Control(t, http.MethodPost, "/online", nil)
	w.expect(true, "apply", "-auto-approve")
	if n := srv.Count("/access_codes/create"); n != 1 {
		t.Errorf("%d codes were created", n)
	}
	w.expect(true, "destroy", "-auto-approve")
	if lock.Has(t, pin) {
		t.Error("the PIN is still on the lock")
	}
}

func TestProviderEndsWhenTerraformIsKilled(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	w := newWorkspace(t, map[string]string{"main.tf": required + f.config(webhook("https://example.com/a", ""))})
	came, release := f.hold("/webhooks/create")
	defer release()
	apply := w.startLogging("", "apply", "-auto-approve") // who logs to one who is gone is ended by that
	<-came
	plugin := pluginOf(t, apply.cmd.Process.Pid)
	apply.send(apply.cmd.Process.Pid, syscall.SIGKILL)
	_ = apply.cmd.Wait() // returns the error of the signal
	expectGone(t, "the provider ends without Terraform", plugin)
}

func TestProviderThatIsDebuggedEndsWhenItIsTold(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			if err := buildMirror(); err != nil {
				t.Fatalf("build the provider: %v", err)
			}
			binaries, err := filepath.Glob(filepath.Join(mirrorDir, "*/*/*/*/*/terraform-provider-deviceaccess_*"))
			if err != nil || len(binaries) != 1 {
				t.Fatalf("the provider is %q, %v", binaries, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, binaries[0], "-debug")
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for lines.Scan() && !strings.Contains(lines.Text(), "TF_REATTACH_PROVIDERS=") {
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() { // until it has ended
			}
			_ = cmd.Wait() // returns the error of the signal
			if ctx.Err() != nil {
				t.Error("it does not end")
			}
		})
	}
}

func TestUpdateThatIsCutShortLeavesTheGuardOfWorkspaces(t *testing.T) {
	const stranger = "99999999-2222-4333-8444-555555555555"
	for name, c := range map[string]struct {
		cut     func(*testing.T, *running)
		refusal string
	}{
		"the job is terminated":  {func(_ *testing.T, r *running) { r.terminate() }, "the resource was in workspace " + fakeWorkspace},
		"the provider is killed": {func(t *testing.T, r *running) { r.send(pluginOf(t, r.cmd.Process.Pid), syscall.SIGKILL) }, "the state does not name the workspace of the resource"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			config := func(pin string) string { return required + f.config(accessCode(`code = "`+pin+`"`)) }
			w := newWorkspace(t, map[string]string{"main.tf": config("905173846251")})
			w.expect(true, "apply", "-auto-approve")
			w.write("main.tf", config("715938426052"))
			came, release := f.hold("/access_codes/update")
			update := w.start("apply", "-auto-approve")
			<-came
			c.cut(t, update)
			release()
			if err := update.cmd.Wait(); err == nil {
				t.Error("the update is said to be a success")
			}

			var codes map[string]*fakeCode
			f.do(func() { f.workspace, codes, f.codes = stranger, f.codes, map[string]*fakeCode{} })
			w.expect(false, "plan", "-no-color")
			w.expect(false, "destroy", "-auto-approve", "-refresh=false", "-no-color")
			said := plainly(w.seen.String())
			expectSaid(
				t,
				"another workspace",
				said,
				"the API key belongs to workspace "+stranger,
				c.refusal,
				"Nothing is removed from the state.",
			)
			if state := w.read("state", "list"); !strings.Contains(state, front) {
				t.Errorf("the state has %q", state)
			}
			f.do(func() { f.workspace, f.codes = fakeWorkspace, codes })
			w.expect(true, "apply", "-auto-approve") // from where on the workspace is known again
			f.do(func() { f.workspace, f.codes = stranger, map[string]*fakeCode{} })
			from := w.seen.Len()
			w.expect(false, "plan", "-no-color")
			expectSaid(
				t,
				"another workspace, again",
				plainly(w.seen.String()[from:]),
				"the resource was in workspace "+fakeWorkspace,
			)
		})
	}
}

func TestResourceOfUnknownWorkspace_RemovedOnceWorkspaceIsSet(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	config := func(setting, name string) string {
		return required + strings.Replace(
			f.config(accessCode("code = \"905173846251\"\n  name = \""+name+"\"")),
			"{\n",
			"{\n"+setting,
			1,
		)
	}
	w := newWorkspace(t, map[string]string{"main.tf": config("", "Guest")})
	w.expect(true, "apply", "-auto-approve")
	w.write("main.tf", config("", "Cleaner"))
	came, release := f.hold("/access_codes/update")
	update := w.start("apply", "-auto-approve")
	<-came
	update.send(pluginOf(t, update.cmd.Process.Pid), syscall.SIGKILL)
	release()
	_ = update.cmd.Wait() // fails
	f.do(func() { clear(f.codes) })
	w.expect(false, "plan", "-no-color")
	expectSaid(
		t,
		"without a workspace",
		plainly(w.seen.String()),
		"the state does not name the workspace of the resource",
		"set `workspace_id` in the provider block, or "+envWorkspaceID,
	)
	w.write("main.tf", config("  workspace_id = \""+fakeWorkspace+"\"\n", "Cleaner"))
	expectSaid(t, "with one", w.plain("plan"), "1 to add, 0 to change, 0 to destroy")
}
