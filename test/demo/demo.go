package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// demo is the state of the demo.
type demo struct {
	server, plugin, source, terraform string

	// all files of the demo, deleted at its end
	dir           string
	running       *exec.Cmd
	ready         struct{ URL, APIKey string }
	lock          string
	cleaner       api.UnmanagedAccessCode
	neighbour     api.UnmanagedAccessCode
	vars          []string
	onLockAtFirst int
}

var steps int

func step(format string, args ...any) {
	steps++
	fmt.Printf("\n── %d. %s\n", steps, fmt.Sprintf(format, args...))
}

func detail(format string, args ...any) { fmt.Printf("   "+format+"\n", args...) }

// prepare creates a working directory with the files and the provider.
func (d *demo) prepare(context.Context) (err error) {
	for _, path := range []*string{&d.server, &d.plugin, &d.source} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if _, err := exec.LookPath(d.terraform); err != nil {
		return fmt.Errorf("the demo needs Terraform 1.11 or newer: %w", err)
	}
	if d.dir, err = os.MkdirTemp("", "deviceaccess-demo-"); err != nil {
		return err
	}
	// the private database may run as another user
	if err := os.Chmod(d.dir, 0o711); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(d.dir, "tf"), os.DirFS(d.source)); err != nil {
		return fmt.Errorf("copy the Terraform files: %w", err)
	}
	mirror := filepath.Join(
		d.dir,
		"tf/terraform.d/plugins/registry.terraform.io/deviceaccess/deviceaccess/0.1.0",
		runtime.GOOS+"_"+runtime.GOARCH,
	)
	if err := os.MkdirAll(mirror, 0o755); err != nil {
		return err
	}
	return os.Symlink(d.plugin, filepath.Join(mirror, "terraform-provider-deviceaccess_v0.1.0"))
}

func (d *demo) startServer(ctx context.Context) error {
	step("The server starts, with a database and simulated locks of its own")
	readyFile := filepath.Join(d.dir, "ready.json")
	log, err := os.Create(filepath.Join(d.dir, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	begin := time.Now()
	d.running = exec.CommandContext(
		context.WithoutCancel(ctx),
		d.server,
		"serve",
		"--sandbox",
		"--listen",
		"127.0.0.1:0",
		"--data-dir",
		filepath.Join(d.dir, "data"),
		"--ready-file",
		readyFile,
	)
	d.running.Stdout, d.running.Stderr = log, log
	// ^C reaches the demo, which then stops the server
	d.running.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.running.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- d.running.Wait() }()
	for {
		if b, err := os.ReadFile(readyFile); err == nil {
			var ready struct {
				URL    string `json:"url"`
				APIKey string `json:"api_key"`
			}
			if err := json.Unmarshal(b, &ready); err != nil {
				return fmt.Errorf("read the ready file: %w", err)
			}
			d.ready.URL, d.ready.APIKey = ready.URL, ready.APIKey
			detail("It listens on %s after %s.", ready.URL, time.Since(begin).Round(10*time.Millisecond))
			return d.everyLockRead(ctx)
		}
		select {
		case err := <-exited:
			out, _ := os.ReadFile(log.Name())
			d.running = nil
			return fmt.Errorf("the server has ended: %w\n%s", err, out)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// everyLockRead waits until the server has read the August lock.
func (d *demo) everyLockRead(ctx context.Context) error {
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		var devices api.DevicesResponse
		if err := d.post(ctx, "/devices/list", map[string]any{"device_type": "august_lock"}, &devices); err != nil {
			return err
		}
		if len(devices.Devices) > 0 {
			var codes api.UnmanagedAccessCodesResponse
			if err := d.post(
				ctx,
				"/access_codes/unmanaged/list",
				map[string]any{"device_id": devices.Devices[0].DeviceID},
				&codes,
			); err != nil {
				return err
			}
			if len(codes.AccessCodes) > 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return errors.New("the simulated locks did not appear within 30 s")
}

func (d *demo) stopServer(ctx context.Context) error {
	step("The server stops")
	process := d.running.Process
	d.running = nil
	if err := process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	deadline := time.Now().Add(30 * time.Second)
	for process.Signal(syscall.Signal(0)) == nil {
		if time.Now().After(deadline) {
			return errors.New("the server does not stop")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// clean removes everything, in any state.
func (d *demo) clean() error {
	if d.running != nil {
		if err := d.stopServer(context.Background()); err != nil {
			return err
		}
	}
	return os.RemoveAll(d.dir)
}

// tf runs terraform in the working directory and shows its output.
func (d *demo) tf(ctx context.Context, args ...string) error {
	fmt.Printf("   $ terraform %s\n", strings.Join(args, " "))
	cmd := d.command(ctx, args...)
	out := &indented{to: os.Stdout, fresh: true}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("terraform %s: %w", args[0], err)
	}
	return nil
}

func (d *demo) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.terraform, args...)
	cmd.Dir = filepath.Join(d.dir, "tf")
	cmd.Env = append(
		os.Environ(),
		"TF_CLI_CONFIG_FILE=/dev/null",
		"TF_IN_AUTOMATION=1",
		"CHECKPOINT_DISABLE=1",
		"TF_CLI_ARGS=-no-color",
		"DEVICEACCESS_ENDPOINT="+d.ready.URL,
		"DEVICEACCESS_API_KEY="+d.ready.APIKey,
	)
	cmd.Env = append(cmd.Env, d.vars...)
	return cmd
}

// change is a plan's change of one resource.
type change struct {
	actions   []string
	importing bool
}

// plan reads a saved plan.
func (d *demo) plan(ctx context.Context, file string) (map[string]change, error) {
	out, err := d.command(ctx, "show", "-json", file).Output()
	if err != nil {
		return nil, fmt.Errorf("terraform show: %w", err)
	}
	var plan struct {
		ResourceChanges []struct {
			Address string `json:"address"`
			Change  struct {
				Actions   []string        `json:"actions"`
				Importing json.RawMessage `json:"importing"`
			} `json:"change"`
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal(out, &plan); err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	changes := map[string]change{}
	for _, c := range plan.ResourceChanges {
		changes[c.Address] = change{c.Change.Actions, len(c.Change.Importing) > 0}
	}
	return changes, nil
}

// expectManaged checks with the API whether a code is managed.
func (d *demo) expectManaged(ctx context.Context, c api.UnmanagedAccessCode, managed bool) error {
	managedStatus, err := d.status(ctx, "/access_codes/get", map[string]any{"access_code_id": c.AccessCodeID})
	if err != nil {
		return err
	}
	if is := managedStatus == http.StatusOK; is != managed {
		return fmt.Errorf("the API says that %q is managed: %v, want %v", *c.Name, is, managed)
	}
	detail("The API says that %q is managed: %v.", *c.Name, managed)
	return nil
}

// expectOnLock checks the lock's memory directly, without the API.
func (d *demo) expectOnLock(ctx context.Context, want map[string]bool) error {
	cmd := exec.CommandContext(
		ctx,
		d.server,
		"sandbox",
		"codes",
		"--endpoint",
		d.ready.URL,
		"--data-dir",
		filepath.Join(d.dir, "data"),
		"--log-level",
		"error",
		d.lock,
	)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("read the lock's memory: %w\n%s", err, stderr.Bytes())
	}
	has := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		pin, _, _ := strings.Cut(line, " ")
		has[strings.TrimSpace(pin)] = true
	}
	on, off := 0, 0
	for pin, wanted := range want {
		if has[pin] != wanted {
			return fmt.Errorf("wrong memory of the lock: a code is present: %v, want %v", has[pin], wanted)
		}
		if wanted {
			on++
		} else {
			off++
		}
	}
	detail("Read directly, the lock opens for %s, as expected.", opens(on, off))
	return nil
}

// opens describes how many of the demo's PINs open a lock.
func opens(on, off int) string {
	switch {
	case off == 0:
		return fmt.Sprintf("all %d checked PINs", on)
	case on == 0:
		return fmt.Sprintf("none of the %d checked PINs", off)
	default:
		return fmt.Sprintf("%d of the %d checked PINs", on, on+off)
	}
}

// post sends a request to the API, and fails unless it succeeds.
func (d *demo) post(ctx context.Context, path string, in, out any) error {
	status, body, err := d.send(ctx, path, in)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s answers %d: %s", path, status, body)
	}
	return json.Unmarshal(body, out)
}

func (d *demo) status(ctx context.Context, path string, in any) (int, error) {
	status, _, err := d.send(ctx, path, in)
	return status, err
}

func (d *demo) send(ctx context.Context, path string, in any) (int, []byte, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.ready.URL+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+d.ready.APIKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("ask the API: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

// indented indents another program's output.
type indented struct {
	to    io.Writer
	fresh bool // at the start of a line
}

func (w *indented) Write(p []byte) (int, error) {
	var b bytes.Buffer
	for _, c := range p {
		if w.fresh && c != '\n' {
			b.WriteString("   │ ")
		}
		b.WriteByte(c)
		w.fresh = c == '\n'
	}
	_, err := w.to.Write(b.Bytes())
	return len(p), err
}
