package apptest

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

const command = "github.com/deviceaccess/terraform-provider-deviceaccess/server/cmd/deviceaccess-server"

var process = pool{start: startProcess}

// SharedProcess is Shared for a server in a process of its own, with its own database. The test reads and changes that
// database like the commands of the server. The App has only its Access.
func SharedProcess(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return process.join(t).Sandbox(t, opts...)
}

// startProcess builds and starts the server's program.
func startProcess(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	program, ready := filepath.Join(dir, "deviceaccess-server"), filepath.Join(dir, "ready.json")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, command).
		CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	database := app.Database{
		DatabaseURL: storetest.New(t),
		DataDir:     filepath.Join(dir, "data"),
		MaxConns:    4 + app.ConnsOutsidePool,
	}
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(
		context.WithoutCancel(t.Context()),
		program,
		"serve",
		"--sandbox",
		"--sandbox-speed=50",
		"--offline-debounce=50ms",
		"--requests-per-second=10000",
		"--database-connections=40",
		"--allow-webhook-prefix=127.0.0.0/8",
		"--listen=127.0.0.1:0",
		"--ready-file="+ready,
	)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = append(
		os.Environ(),
		"DEVICEACCESS_DATABASE_URL="+database.DatabaseURL,
		"DEVICEACCESS_DATA_DIR="+database.DataDir,
	)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopProcess(t, cmd, output) })
	s := &Server{t: t, devices: map[string]string{}}
	testenv.UntilOr(t, "the server is ready", func() bool {
		var at struct {
			URL       string `json:"url"`
			APIKey    string `json:"api_key"`
			Workspace string `json:"workspace_id"`
		}
		data, err := os.ReadFile(ready)
		if err != nil || json.Unmarshal(data, &at) != nil {
			return false
		}
		s.URL, s.APIKey, s.WorkspaceID, s.cloud = at.URL, at.APIKey, at.Workspace, at.URL
		return true
	}, func() { t.Logf("the server wrote to %s", output.Name()) })
	admin, err := app.OpenAdmin(t.Context(), database, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s.App, s.config = &app.App{Access: admin.Access}, app.Config{Database: database}
	return s
}

// stopProcess stops the server, which must end without an error.
func stopProcess(t testing.TB, cmd *exec.Cmd, output *os.File) {
	t.Helper()
	defer output.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	overdue := time.AfterFunc(testenv.Timeout(time.Minute), func() { _ = cmd.Process.Kill() })
	defer overdue.Stop()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
