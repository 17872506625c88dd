package provider

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// workspace is a folder in which the real terraform runs with the built provider, as users run it.
type workspace struct {
	t    *testing.T
	dir  string
	log  string       // TF_LOG
	seen bytes.Buffer // everything that terraform and the provider have written
}

// mirrorDir is made and removed by TestMain.
var mirrorDir string

// buildMirror builds the provider into mirrorDir, to be installed from there.
var buildMirror = sync.OnceValue(func() error {
	const version = "0.0.1"
	plugin := filepath.Join(
		mirrorDir,
		"registry.terraform.io/deviceaccess/deviceaccess",
		version,
		runtime.GOOS+"_"+runtime.GOARCH,
		"terraform-provider-deviceaccess_v"+version,
	)
	build := exec.Command(
		"go",
		"build",
		"-ldflags",
		"-X main.version="+version,
		"-o",
		plugin,
		"github.com/deviceaccess/terraform-provider-deviceaccess",
	)
	build.Stderr = os.Stderr
	return build.Run()
})

// newWorkspace is a folder with these files in it, in which terraform init has been run.
func newWorkspace(t *testing.T, files map[string]string) *workspace {
	t.Helper()
	needTerraform(t)
	w := &workspace{t: t, dir: t.TempDir()}
	for name, content := range files {
		w.write(name, content)
	}
	initialize(t, w.dir)
	return w
}

// newLoggedWorkspace is newWorkspace with the fullest log, for tests of what is written there.
func newLoggedWorkspace(t *testing.T, files map[string]string) *workspace {
	t.Helper()
	w := newWorkspace(t, files)
	w.log = "TRACE"
	return w
}

func (w *workspace) write(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// expect runs a command of terraform, and fails the test when it does not end as expected.
func (w *workspace) expect(success bool, args ...string) {
	w.t.Helper()
	from := w.seen.Len()
	cmd := exec.CommandContext(w.t.Context(), "terraform", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &w.seen, &w.seen
	cmd.Env = append(os.Environ(), "TF_LOG="+w.log, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1",
		"TF_CLI_ARGS_apply=-no-color", "TF_CLI_ARGS_plan=-no-color", "TF_CLI_ARGS_destroy=-no-color")
	if err := cmd.Run(); (err == nil) != success {
		w.t.Fatalf("terraform %q ends with %v and says\n%s", args, err, w.seen.String()[from:])
	}
}

// read is what a command of terraform answers.
func (w *workspace) read(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "terraform", args...)
	cmd.Dir = w.dir
	answer, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("terraform %q: %v", args, err)
	}
	return string(answer)
}

const required = "terraform {\n  required_providers {\n    deviceaccess = {\n      source = \"deviceaccess/deviceaccess\"\n    }\n  }\n}\n"
