package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"
)

// testPIN is a PIN that no command may print.
const testPIN = "739152"

// remote returns a program of a person who has a key of the server, but neither its data nor its master key.
func (p *program) remote(r ready) *program {
	p.Helper()
	dir, err := os.MkdirTemp(p.dir, "person")
	if err != nil {
		p.Fatal(err)
	}
	return &program{
		T:        p.T,
		dir:      dir,
		database: "postgres://127.0.0.1:1/none",
		env: []string{
			"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "DEVICEACCESS_SERVER=" + r.URL, keyVariable + "=" + r.APIKey,
		},
	}
}

// frontDoor waits until the server has found its simulated devices, and returns the id of a lock.
func (p *program) frontDoor() (id string) {
	p.Helper()
	p.until("the devices are online", func() bool {
		id, _ = p.run("devices", "get", "Front Door", "--output", "id")
		return id != "" && p.ok("devices", "list", "--output", "id", "--state", "offline") == ""
	})
	return strings.TrimSpace(id)
}

// shown runs a command, and fails the test if its output contains the PIN of the tests.
func (p *program) shown(args ...string) string {
	p.Helper()
	out, err := p.command(args...).CombinedOutput()
	if err != nil {
		p.Fatalf("%v: %v: %s", args, err, bytes.ReplaceAll(out, []byte(testPIN), []byte("PIN")))
	}
	if bytes.Contains(out, []byte(testPIN)) {
		p.Errorf("%v prints a PIN", args)
	}
	return strings.TrimSpace(string(out))
}

// exits returns the exit code of a command and what it says.
func (p *program) exits(args ...string) (int, string) {
	p.Helper()
	out, err := p.command(args...).CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode(), string(out)
	}
	if err != nil {
		p.Fatal(err)
	}
	return 0, string(out)
}

// The daily work with devices and codes needs a key, and neither the data of the server nor its master key.
func TestDevicesAndCodes(t *testing.T) {
	t.Parallel()
	s := newProgram(t)
	r, _ := s.serve("--sandbox-speed", "20")
	p := s.remote(r)

	// the listings
	lock := p.frontDoor()
	ids := strings.Fields(p.shown("devices", "list", "--output", "id"))
	table := p.shown("devices", "list", "--state", "online")
	if !strings.HasPrefix(table, "DEVICE") || !strings.Contains(table, ids[0]) {
		t.Fatalf("the devices are %v:\n%s", ids, table)
	}
	if out := p.shown("devices", "list", "--no-headers"); strings.Contains(out, "DEVICE  ") {
		t.Errorf("there is a header: %s", out)
	}
	if out := p.shown("devices", "list", "--state", "offline", "--output", "json"); out != "[]" {
		t.Errorf("there are offline devices: %s", out)
	}
	var devices []struct {
		DeviceID    string `json:"device_id" yaml:"device_id"`
		DisplayName string `json:"display_name" yaml:"display_name"`
	}
	if err := json.Unmarshal([]byte(p.shown("devices", "list", "-o", "json")), &devices); err != nil ||
		len(devices) != len(ids) || devices[0].DeviceID != ids[0] {
		t.Errorf("the JSON is %v: %v", devices, err)
	}
	if err := yaml.Unmarshal([]byte(p.shown("devices", "list", "-o", "yaml")), &devices); err != nil ||
		len(devices) != len(ids) || devices[0].DeviceID != ids[0] {
		t.Errorf("the YAML is %v: %v", devices, err)
	}
	for _, d := range devices {
		if d.DeviceID == lock {
			for _, by := range []string{d.DeviceID, d.DisplayName, d.DeviceID[len(d.DeviceID)-8:]} {
				if out := p.shown("devices", "get", by); !strings.Contains(out, d.DeviceID) {
					t.Errorf("the device by %q: %s", by, out)
				}
			}
		}
	}

	// the bolt
	for _, act := range []string{"unlock", "lock"} {
		p.shown("devices", act, lock)
		if out := p.shown("devices", "get", lock); !strings.Contains(out, act+"ed") {
			t.Errorf("after %s: %s", act, out)
		}
	}

	// the life of a code
	pin := p.write("pin", testPIN+"\n")
	id := p.ok("codes", "create", "--device", lock, "--name", "Guest", "--pin-file", pin)
	for _, args := range [][]string{
		{"codes", "list"},
		{"codes", "list", "--device", lock, "--status", "set"},
		{"codes", "get", id},
		{"devices", "codes", lock},
	} {
		for _, format := range []string{"table", "json", "yaml", "id"} {
			if out := p.shown(append(args, "--output", format)...); !strings.Contains(out, id) ||
				format != "id" && !strings.Contains(out, "Guest") {
				t.Errorf("%v as %s has no code %s: %s", args, format, id, out)
			}
		}
	}
	for _, none := range [][]string{{"--older-than", "1h"}, {"--status", "setting"}, {"--with-errors"}} {
		if out := p.shown(append([]string{"codes", "list", "--output", "id"}, none...)...); out != "" {
			t.Errorf("%v: %s", none, out)
		}
	}
	if out := p.shown("codes", "retry", id); !strings.Contains(out, "nothing to retry") {
		t.Errorf("a retry of a code on its device: %s", out)
	}
	if code, out := p.exits("codes", "create", "--device", lock, "--pin-file", pin); code != exitRefused ||
		strings.Contains(out, testPIN) {
		t.Errorf("a PIN that is taken: %d", code)
	}
	p.shown("codes", "delete", id)
	if code, out := p.exits("codes", "get", id); code != exitNotFound {
		t.Errorf("a deleted code: %d: %s", code, out)
	}

	// exit codes
	const missing = "00000000-0000-7000-8000-000000000000"
	for command, want := range map[string]int{
		"devices get " + missing:                            exitNotFound,
		"devices get Nowhere":                               exitNotFound,
		"devices get":                                       exitUsage,
		"devices list --state broken":                       exitUsage,
		"devices list --output xml":                         exitUsage,
		"codes get nothing":                                 exitUsage,
		"codes create --device " + lock + " --ends-at soon": exitUsage,
		"codes list --key-file /nowhere":                    exitUsage,
		"codes list --profile none":                         exitUsage,
	} {
		if code, out := p.exits(strings.Fields(command)...); code != want {
			t.Errorf("%s: exit code %d, want %d: %s", command, code, want, out)
		}
	}
}

// The key comes from a file, a variable, or a profile, and goes to no other server than that of the profile.
func TestAPIClient_Connection(t *testing.T) {
	t.Parallel()
	s := newProgram(t)
	r, _ := s.serve()
	p := s.remote(r)
	if err := os.Mkdir(filepath.Join(p.dir, "deviceaccess"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.write("deviceaccess/home.key", r.APIKey+"\n")
	p.write("deviceaccess/profiles.yaml", "default: home\nprofiles:\n"+
		"  home: {server: "+r.URL+"/, key-file: home.key}\n"+
		"  away: {server: \"http://127.0.0.1:1\", key-file: home.key}\n"+
		"  here: {key-file: none.key}\n")
	home := []string{"HOME=" + p.dir, "XDG_CONFIG_HOME=" + p.dir}
	wrong := p.write("wrong", "seam_Wrong123_"+strings.Repeat("x", 24))
	token := s.ok("keys", "create", "--kind", "pat", "--workspace", r.Workspace)
	for name, c := range map[string]struct {
		env  []string
		args []string
		code int
		want string
	}{
		"default profile":        {nil, nil, 0, ""},
		"named profile":          {nil, []string{"--profile", "home"}, 0, ""},
		"other profile":          {nil, []string{"--profile", "away"}, exitFailed, "cannot be reached"},
		"other server":           {nil, []string{"--server", "http://127.0.0.1:2"}, exitUsage, "the key of the profile is for"},
		"profile without server": {nil, []string{"--profile", "here"}, exitUsage, "none.key does not exist"},
		"profile without server, other server": {
			nil,
			[]string{"--profile", "here", "--server", r.URL},
			exitUsage,
			"the key of the profile is for " + defaultServer + ", not for " + r.URL,
		},
		"variable wins": {[]string{keyVariable + "=seam_none"}, nil, exitRefused, "the key is that of " + keyVariable},
		"file wins": {
			[]string{keyVariable + "=seam_none"}, []string{"--key-file", wrong}, exitRefused, "the key is that of " + wrong,
		},
		"two variables": {
			[]string{keyVariable + "=seam_none", "DEVICEACCESS_KEY_FILE=" + wrong}, nil, exitUsage, "remove one of them",
		},
		"token": {[]string{keyVariable + "=" + token}, []string{"--workspace", r.Workspace}, 0, ""},
		"token without workspace": {
			[]string{keyVariable + "=" + token}, nil, exitUsage, "choose a workspace with --workspace",
		},
		"no key":    {[]string{"XDG_CONFIG_HOME=" + s.dir}, nil, exitUsage, "there is no API key: set --key-file"},
		"no server": {nil, []string{"--server", "locks.example.com"}, exitUsage, "write it like http://127.0.0.1:8500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &program{T: t, dir: p.dir, database: p.database, env: append(append([]string{}, home...), c.env...)}
			code, out := q.exits(append([]string{"devices", "list"}, c.args...)...)
			for _, secret := range []string{r.APIKey, token} {
				if strings.Contains(out, secret) {
					t.Error("the key is printed")
				}
			}
			if code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, want %d with %q: %s", code, c.code, c.want, withoutKeys([]byte(out)))
			}
		})
	}
}

// A key that was written into profiles.yaml by mistake is not quoted.
func TestProfiles_Malformed(t *testing.T) {
	t.Parallel()
	const secret = "seam_s3cret12_s3cret"
	for _, text := range []string{
		"key: " + secret,
		"profiles:\n  home: " + secret,
		"profiles:\n  home:\n    key: " + secret,
		"profiles:\n  home:\n    server: [" + secret,
	} {
		_, err := parseProfiles("profiles.yaml", []byte(text))
		if err == nil || strings.Contains(err.Error(), "s3cret") || exitCode(err) != exitUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := parseProfiles("profiles.yaml", nil); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}
