package provider

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// testedModule is the example of a module with tests, and of the workflow that runs them.
const testedModule = "../examples/tested-module"

// steps are the commands of a workflow, by the name of their step.
func steps(t *testing.T, workflow string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, step := range regexp.MustCompile(`(?m)^      - name: (.*)\n(?:        if: .*\n)?        run: \|\n((?:          .*\n)+)`).FindAllStringSubmatch(workflow, -1) {
		found[step[1]] = step[2]
	}
	if len(found) != 4 {
		t.Fatalf("%d steps were found", len(found))
	}
	return found
}

// TestWorkflowOfTheExampleModuleRuns runs what the workflow runs, apart from its downloads: the server is built here,
// and the provider comes from a mirror.
func TestWorkflowOfTheExampleModuleRuns(t *testing.T) {
	t.Parallel()
	onceOnly(t)
	needTerraform(t)
	for _, program := range []string{"bash", "jq"} { // which GitHub's machines have
		if _, err := exec.LookPath(program); err != nil {
			storetest.Missing(t, "%s, for the workflow", program)
		}
	}
	if err := buildMirror(); err != nil {
		t.Fatal(err)
	}
	dir, bin, data := t.TempDir(), t.TempDir(), openDir(t)
	if err := os.CopyFS(dir, os.DirFS(testedModule)); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(
		t.Context(),
		"go",
		"build",
		"-o",
		bin,
		"github.com/deviceaccess/terraform-provider-deviceaccess/server/cmd/deviceaccess-server",
	)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v: %s", err, said)
	}
	put(
		t,
		filepath.Join(bin, "mirror.tfrc"),
		fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirrorDir),
	)
	workflow := read(t, filepath.Join(dir, ".github/workflows/test.yml"))
	run := steps(t, workflow)
	if install := run["Install the server"]; !strings.Contains(
		install,
		"go install github.com/deviceaccess/terraform-provider-deviceaccess/server/cmd/deviceaccess-server@",
	) {
		t.Errorf("the server is installed by %q", install)
	}
	variables := filepath.Join(bin, "env")
	put(t, variables, "")
	step := func(name string) string {
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", run[name])
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
		cmd.Env = append(
			os.Environ(),
			"PATH="+bin+":"+os.Getenv("PATH"),
			"TF_CLI_CONFIG_FILE="+filepath.Join(bin, "mirror.tfrc"),
			"GITHUB_ENV="+variables,
			"DEVICEACCESS_LISTEN=127.0.0.1:0",
			"DEVICEACCESS_DATA_DIR="+data,
			"CHECKPOINT_DISABLE=1",
		)
		cmd.Env = append(cmd.Env, strings.Fields(read(t, variables))...)
		out := filepath.Join(bin, "out")
		file, err := os.Create(out) // not a pipe, which the server in the background would keep open
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		cmd.Stdout, cmd.Stderr = file, file
		err = cmd.Run()
		t.Cleanup(func() { end(t, cmd.Process.Pid) })
		if err != nil {
			t.Fatalf(
				"the step %q ends with %v:\n%s\n%s",
				name,
				err,
				read(t, out),
				read(t, filepath.Join(dir, "server.log")),
			)
		}
		return read(t, out)
	}
	step("Start the server with simulated locks")
	if said := step("Test"); !strings.Contains(said, "3 passed, 0 failed") {
		t.Errorf("the tests say\n%s", said)
	}
}

// end stops the processes that a step has left behind, and waits for them.
func end(t *testing.T, group int) {
	t.Helper()
	look, enough := time.NewTicker(20*time.Millisecond), time.After(20*time.Second)
	defer look.Stop()
	for signal := syscall.SIGTERM; syscall.Kill(-group, signal) == nil; signal = 0 {
		select {
		case <-look.C: // they are not our children, whose end would be told
		case <-enough:
			_ = syscall.Kill(-group, syscall.SIGKILL)
			return
		}
	}
}

// openDir is a folder that every user may enter: a database that root starts runs as another.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "deviceaccess-data-") //nolint:usetesting // whose folders are closed to other users
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
