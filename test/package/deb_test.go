package packagetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

const (
	serverUnit = "deviceaccess-server.service"
	backupUnit = "deviceaccess-server-backup.service"
	configFile = "/etc/deviceaccess/config.yaml"
	keyFile    = "/etc/deviceaccess/master-key"
	dataDir    = "/var/lib/deviceaccess"
	backupDir  = "/var/backups/deviceaccess"
)

// deb returns the path of a package of the server with a version. The program in it is always that of `make package`.
func deb(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("ARCH", runtime.GOARCH)
	t.Setenv("VERSION", version)
	t.Setenv("CGO_ENABLED", "0")
	run(t, "go", "tool", "-modfile=tools/go.mod", "nfpm", "package", "--config", "packaging/nfpm.yaml",
		"--packager", "deb", "--target", dir)
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(found) != 1 {
		t.Fatalf("nfpm writes %v: %v", found, err)
	}
	return found[0]
}

// install installs a package in the tree.
func (d *tree) install(path string) string {
	d.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		d.Fatal(err)
	}
	d.write("/root/server.deb", string(b), 0o644)
	return d.run("dpkg", "--install", "/root/server.deb")
}

// api calls an operation of a server, which must succeed.
func api(t *testing.T, client *http.Client, url, key, path string, in, out any) {
	t.Helper()
	if status, answer := tryAPI(t, client, url, key, path, in); status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, status, answer)
	} else if err := json.Unmarshal(answer, out); err != nil {
		t.Fatal(err)
	}
}

func tryAPI(t *testing.T, client *http.Client, url, key, path string, in any) (int, []byte) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer.Bytes()
}

type object = map[string]any

// codeStatus returns the status of an access code, or "" if it does not exist.
func codeStatus(t *testing.T, url, key, id string) string {
	t.Helper()
	status, answer := tryAPI(t, http.DefaultClient, url, key, "/access_codes/get", object{"access_code_id": id})
	if status == http.StatusNotFound {
		return ""
	}
	var out struct {
		AccessCode struct{ Status string } `json:"access_code"`
	}
	if err := json.Unmarshal(answer, &out); err != nil || status != http.StatusOK {
		t.Fatalf("get the code: %d %v", status, err)
	}
	return out.AccessCode.Status
}

// The Debian package is installed, used, backed up, put behind proxies, upgraded, restored, removed, and purged, as the guide
// "Run it" says.
func TestDebianPackage(t *testing.T) {
	need(t, "mmdebstrap", "systemd-analyze", "nsenter")
	older, newer := deb(t, "0.0.9"), deb(t, "0.1.0")
	d := newTree(t, "postgresql", "systemd", "nginx-light", "caddy", "ca-certificates")
	begun := time.Now()

	said := d.install(older)
	if !strings.Contains(said, "systemctl enable --now") || !strings.Contains(said, keyFile) {
		t.Errorf("the installation does not say what to do next: %s", said)
	}
	for path, want := range map[string]string{
		keyFile:                        "root:root 600",
		configFile:                     "root:root 644",
		"/etc/deviceaccess":            "root:root 755",
		dataDir:                        "deviceaccess:deviceaccess 700",
		backupDir:                      "deviceaccess:deviceaccess 700",
		"/usr/bin/deviceaccess-server": "root:root 755",
		"/usr/share/man/man8/deviceaccess-server.8.gz":               "root:root 644",
		"/usr/share/bash-completion/completions/deviceaccess-server": "root:root 644",
		"/usr/share/zsh/vendor-completions/_deviceaccess-server":     "root:root 644",
		"/usr/share/doc/deviceaccess-server/examples/nginx.conf":     "root:root 644",
	} {
		if mode := d.mode(path); mode != want {
			t.Errorf("%s has %s, expected %s", path, mode, want)
		}
	}
	masterKey := d.read(keyFile)
	t.Run("units", func(t *testing.T) { checkUnits(t, d.root) })

	port, httpsPort := freePort(t), freePort(t)
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	config := strings.NewReplacer(
		"listen: 127.0.0.1:8500", fmt.Sprintf("listen: 127.0.0.1:%d", port),
		"#public-url: https://locks.example.com", fmt.Sprintf("public-url: https://locks.example.com:%d", httpsPort),
		"#trust-proxy:", "trust-proxy:",
	).Replace(d.read(configFile)) + "sandbox: true\nsandbox-speed: 20\n"
	d.write(configFile, config, 0o644)
	if out := d.run("deviceaccess-server", "serve", "--check-config"); strings.Contains(out, "FAILED") {
		t.Errorf("the installed configuration: %s", out)
	}
	d.systemctl("enable", "deviceaccess-server-backup.timer")
	d.systemctl("enable", serverUnit)
	d.systemctl("start", serverUnit)
	key := keyIn(t, d.run("deviceaccess-server", "keys", "create", "--name", "test", "--quiet"))
	id := createCode(t, url, key)
	t.Logf("installed, started, and set a code in %s", time.Since(begun).Round(time.Second))

	d.systemctl("start", backupUnit)
	backups := d.list(backupDir)
	if len(backups) != 1 || !strings.HasSuffix(backups[0], ".tar.gz") {
		t.Fatalf("the backup unit leaves %v", backups)
	}
	t.Run("proxies", func(t *testing.T) { (&tree{t, d.root, d.init}).proxies(httpsPort, port, key) })

	before := d.property("MainPID")
	d.install(newer)
	if d.read(keyFile) != masterKey || d.read(configFile) != config {
		t.Error("the upgrade replaces the master key or the configuration")
	}
	if state, after := d.property("ActiveState"), d.property("MainPID"); state != "active" ||
		after == before {
		t.Errorf("after the upgrade, the server is %s, and its process %s was %s", state, after, before)
	}
	if status := codeStatus(t, url, key, id); status != "set" {
		t.Errorf("after the upgrade, the code is %q", status)
	}
	t.Run("watchdog", func(t *testing.T) { (&tree{t, d.root, d.init}).freeze() })

	d.systemctl("stop", serverUnit)
	d.run("mv", dataDir, dataDir+".before")
	d.run("install", "--directory", "--owner=deviceaccess", "--group=deviceaccess", "--mode=0700", dataDir)
	d.run("deviceaccess-server", "restore", backupDir+"/"+backups[0])
	d.systemctl("start", serverUnit)
	if status := codeStatus(t, url, key, id); status != "set" {
		t.Errorf("after the restore, the code is %q", status)
	}

	d.run("dpkg", "--remove", "deviceaccess-server")
	if d.has("/usr/bin/deviceaccess-server") || !d.has(dataDir+"/postgres") || d.read(keyFile) != masterKey ||
		d.read(configFile) != config {
		t.Error("the removal keeps the program, or deletes data, key, or configuration")
	}
	d.install(newer)
	d.systemctl("start", serverUnit)
	if status := codeStatus(t, url, key, id); status != "set" {
		t.Errorf("after a new installation, the code is %q", status)
	}
	d.run("dpkg", "--purge", "deviceaccess-server")
	for _, path := range []string{dataDir, "/etc/deviceaccess"} {
		if d.has(path) {
			t.Errorf("the purge leaves %s: %v", path, d.list(path))
		}
	}
	if !slices.Equal(d.list(backupDir), backups) {
		t.Error("the purge deletes backups")
	}
	t.Logf("took %s", time.Since(begun).Round(time.Second))
}

// checkUnits checks the installed units, and how much they isolate the programs.
func checkUnits(t *testing.T, root string) {
	units := []string{serverUnit, backupUnit, "deviceaccess-server-backup.timer"}
	verify := append([]string{"verify", "--man=no", "--root=" + root}, units...)
	if out := run(t, "systemd-analyze", verify...); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	for _, u := range units[:2] {
		// The threshold is ten times the exposure. systemd calls less than 5 OK.
		out := run(t, "systemd-analyze", "security", "--offline=yes", "--threshold=25", "--root="+root, "--no-pager", u)
		t.Log(lastLine(out))
	}
}

// freeze stops the server without ending it. systemd, which receives no signs of life, starts it again.
func (d *tree) freeze() {
	d.write("/etc/systemd/system/"+serverUnit+".d/watchdog.conf", "[Service]\nWatchdogSec=3s\n", 0o644)
	d.run("systemctl", "daemon-reload")
	d.systemctl("restart", serverUnit)
	before := d.property("MainPID")
	d.run("systemctl", "kill", "--kill-whom=main", "--signal=SIGSTOP", serverUnit)
	testenv.Until(d.T, "systemd has started the server again", func() bool {
		pid := d.property("MainPID")
		return pid != before && pid != "0" && d.property("ActiveState") == "active"
	})
	if n := d.property("NRestarts"); n != "1" {
		d.Errorf("systemd has restarted the server %s times", n)
	}
	d.run("rm", "-r", "/etc/systemd/system/"+serverUnit+".d")
	d.run("systemctl", "daemon-reload")
}

// createCode creates an access code on a simulated lock and waits until the lock has it.
func createCode(t *testing.T, url, key string) (id string) {
	t.Helper()
	var devices struct {
		Devices []struct {
			DeviceID               string `json:"device_id"`
			CanProgramOnlineAccess bool   `json:"can_program_online_access_codes"`
		}
	}
	testenv.Until(t, "the sandbox has locks", func() bool {
		api(t, http.DefaultClient, url, key, "/devices/list", object{}, &devices)
		return len(devices.Devices) > 0
	})
	for _, device := range devices.Devices {
		if !device.CanProgramOnlineAccess {
			continue
		}
		var out struct {
			AccessCode struct {
				AccessCodeID string `json:"access_code_id"`
			} `json:"access_code"`
		}
		api(t, http.DefaultClient, url, key, "/access_codes/create",
			object{"device_id": device.DeviceID, "name": "Guest"}, &out)
		id = out.AccessCode.AccessCodeID
		testenv.Until(t, "the lock has the code", func() bool { return codeStatus(t, url, key, id) == "set" })
		return id
	}
	t.Fatal("no simulated lock takes codes")
	return ""
}

var apiKey = regexp.MustCompile(`(?m)^seam_\S+$`)

// keyIn returns the API key in the output of keys create.
func keyIn(t *testing.T, out string) string {
	t.Helper()
	key := apiKey.FindString(out)
	if key == "" {
		t.Fatal("keys create prints no key")
	}
	return key
}

// lastLine returns the last line of a command's output.
func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}
