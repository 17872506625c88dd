package vendorstory

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/deviceaccess/terraform-provider-deviceaccess/provider"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/browser"
)

// source is the address of the provider.
const source = "registry.terraform.io/deviceaccess/deviceaccess"

// needPrograms skips the test without the programs of a story.
func needPrograms(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs Terraform and Chromium")
	}
	apptest.NeedPrograms(t, "terraform")
	browser.Require(t)
}

// workspace is a directory in which Terraform runs.
type workspace struct {
	t      *testing.T
	dir    string
	attach string       // how Terraform reaches the provider
	output bytes.Buffer // of all commands
}

// newWorkspace serves the provider in this process, so that Terraform need not install it.
func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	closed := make(chan struct{})
	reattach, debug := serveDebug(ctx, tf6server.WithDebug, closed)
	go func() {
		if err := tf6server.Serve(source, provider.NewServer("test"), debug, tf6server.WithLoggingSink(t)); err != nil {
			t.Errorf("serve the provider: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-closed
	})
	at := <-reattach
	attach, err := json.Marshal(map[string]any{source: map[string]any{
		"Protocol":        at.Protocol,
		"ProtocolVersion": at.ProtocolVersion,
		"Pid":             at.Pid,
		"Test":            at.Test,
		"Addr":            map[string]string{"Network": at.Addr.Network(), "String": at.Addr.String()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &workspace{t: t, dir: t.TempDir(), attach: string(attach)}
}

// serveDebug infers the type of the channel, whose package is no direct dependency.
func serveDebug[C any](
	ctx context.Context,
	option func(context.Context, chan C, chan struct{}) tf6server.ServeOpt,
	closed chan struct{},
) (chan C, tf6server.ServeOpt) {
	config := make(chan C)
	return config, option(ctx, config, closed)
}

// write replaces the configuration.
func (w *workspace) write(config string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(config), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// run runs a command of Terraform, which must succeed.
func (w *workspace) run(args ...string) {
	w.t.Helper()
	from := w.output.Len()
	cmd := exec.CommandContext(w.t.Context(), "terraform", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &w.output, &w.output
	cmd.Env = append(
		os.Environ(),
		"TF_REATTACH_PROVIDERS="+w.attach,
		"TF_CLI_CONFIG_FILE="+os.DevNull,
		"TF_IN_AUTOMATION=1",
		"TF_INPUT=0",
		"CHECKPOINT_DISABLE=1",
		"NO_COLOR=1",
	)
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("terraform %q: %v\n%s", args, err, w.output.Bytes()[from:])
	}
}

// config is the configuration with the code and a PIN.
func (r *run) config(pin string) string {
	return fmt.Sprintf(`terraform {
  required_providers {
    deviceaccess = {
      source = "deviceaccess/deviceaccess"
    }
  }
}

provider "deviceaccess" {
  endpoint = %q
  api_key  = %q
}

resource "deviceaccess_access_code" "story" {
  device_id = %q
  name      = %q
  code      = %q
}
`, r.server.URL, r.key, r.device, r.CodeName, pin)
}
