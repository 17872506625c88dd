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

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
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
	return filepath.Join(dir, debName(version))
}

// debName returns the name of the file of a package.
func debName(version string) string {
	return fmt.Sprintf("deviceaccess-server_%s_%s.deb", version, runtime.GOARCH)
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

// The Debian package is installed, connected to a lock, backed up, put behind proxies, upgraded, restored, removed, and
// purged with the commands of the guide "Run it".
func TestDebianPackage(t *testing.T) {
	need(t, "mmdebstrap", "systemd-analyze", "nsenter")
	lab := zwave.Start(t, zwave.Plain)
	g := readGuide(t)
	h := &home{tree: newTree(t, "systemd", "nginx-light", "caddy"), guide: g, lock: lab.Locks()[0]}
	d := h.tree
	h.install(lab.URL)
	masterKey := d.read(keyFile)
	h.checkFiles()
	t.Run("units", func(t *testing.T) { checkUnits(t, d.root) })

	listed := d.shell(g.next("9. Back up"), "")
	backups := d.list(backupDir)
	if len(backups) != 1 || !strings.HasSuffix(backups[0], ".tar.gz") || !strings.Contains(listed, backupUnit) {
		t.Fatalf("the backup unit leaves %v; the timers are %s", backups, listed)
	}
	t.Run("proxies", func(t *testing.T) { h.with(t).proxies() })
	config := d.read(configFile)
	later := createCode(t, h.url, h.key)

	before := d.property("MainPID")
	d.shell(g.next("10. Upgrade", "amd64", runtime.GOARCH), "")
	if d.read(keyFile) != masterKey || d.read(configFile) != config {
		t.Error("the upgrade replaces the master key or the configuration")
	}
	if state, after := d.property("ActiveState"), d.property("MainPID"); state != "active" || after == before {
		t.Errorf("after the upgrade, the server is %s, and its process %s was %s", state, after, before)
	}
	h.checkCode("after the upgrade")
	t.Run("watchdog", func(t *testing.T) { h.with(t).freeze() })

	d.shell(g.next("9. Back up", "deviceaccess-2026-11-22T030000Z.tar.gz", backups[0]), "")
	h.checkCode("after the restore")
	if status := codeStatus(t, h.url, h.key, later); status != "" {
		t.Errorf("after the restore, a code from after the backup is %q", status)
	}

	uninstall := lines(g.next("11. Uninstall"))
	d.shell(uninstall[0], "")
	if d.has("/usr/bin/deviceaccess-server") || !d.has(dataDir+"/postgres") || d.read(keyFile) != masterKey ||
		d.read(configFile) != config {
		t.Error("the removal keeps the program, or deletes data, key, or configuration")
	}
	d.run("apt-get", "install", "/root/"+debName("0.2.0"))
	d.systemctl("start", serverUnit)
	h.checkCode("after a new installation")
	backups = d.list(backupDir)
	d.shell(uninstall[1], "")
	for _, path := range []string{dataDir, "/etc/deviceaccess"} {
		if d.has(path) {
			t.Errorf("the purge leaves %s: %v", path, d.list(path))
		}
	}
	if kept := d.list(backupDir); len(kept) == 0 || !slices.Equal(kept, backups) {
		t.Errorf("the purge keeps %v of the backups %v", kept, backups)
	}
	for section := range g.blocks {
		if section != "Containers" {
			g.finish(section)
		}
	}
}

// home is a tree with the server, a lock, and a code on it.
type home struct {
	*tree
	guide *guide
	lock  *zwave.Lock
	port  int
	url   string
	key   string
	pin   string
	code  string
}

// with returns the home for a part of the test.
func (h *home) with(t *testing.T) *home {
	part, d := *h, *h.tree
	d.T, part.tree, part.guide = t, &d, h.guide.with(t)
	return &part
}

// install follows the guide until a lock has a code. Only the ports differ, since other programs of this machine may
// use those of the guide.
func (h *home) install(gateway string) {
	d, g := h.tree, h.guide
	for _, version := range []string{"0.1.0", "0.2.0"} {
		b, err := os.ReadFile(deb(h.T, version))
		if err != nil {
			h.Fatal(err)
		}
		d.write("/root/"+debName(version), string(b), 0o644)
	}
	h.port, h.pin = freePort(h.T), "4713"
	h.url = fmt.Sprintf("http://127.0.0.1:%d", h.port)
	d.env = append(d.env, "DEVICEACCESS_SERVER="+h.url)

	begun := time.Now()
	said := d.shell(g.next("2. Install", "amd64", runtime.GOARCH), "")
	if !strings.Contains(said, "systemctl enable --now") || !strings.Contains(said, keyFile) {
		h.Errorf("the installation does not say what to do next: %s", said)
	}
	h.Logf("installed the package in %s", time.Since(begun).Round(time.Second))
	config := g.replace(d.read(configFile), "listen: 127.0.0.1:8500", fmt.Sprint("listen: 127.0.0.1:", h.port))
	d.write(configFile, config, 0o644)
	if out := d.shell(g.next("3. Configure"), ""); strings.Contains(out, "FAILED") {
		h.Errorf("the installed configuration: %s", out)
	}
	d.shell(g.next("4. Start"), "")
	d.shell(g.next("6. Create a workspace and a key"), "")
	h.key = strings.TrimSpace(d.read("/root/api-key"))
	d.shell(g.next("7. Connect locks", "ws://127.0.0.1:3000", gateway), "")
	name := lockName(h.T, h.url, h.key)
	h.code = lastID(h.T, d.shell(g.next("7. Connect locks", "Front Door", name), h.pin+"\n"))
	took := time.Since(begun).Round(time.Second)
	h.checkCode("at the end of the guide")
	h.Logf("followed the guide from the installation to a code on a lock in %s", took)
	if took > guideLimit {
		h.Errorf("the guide takes %s until a lock has a code, more than %s", took, guideLimit)
	}
	g.skip("2. Install", "dnf ")   // needs another distribution
	g.skip("3. Configure", "psql") // needs another PostgreSQL, which TestImage has
}

// checkFiles checks owners and permissions.
func (h *home) checkFiles() {
	for path, want := range map[string]string{
		keyFile:                        "root:root 600",
		configFile:                     "root:root 644",
		"/etc/deviceaccess":            "root:root 755",
		dataDir:                        "deviceaccess:deviceaccess 700",
		backupDir:                      "deviceaccess:deviceaccess 700",
		"/root/api-key":                "root:root 600",
		"/usr/bin/deviceaccess-server": "root:root 755",
		"/usr/share/man/man8/deviceaccess-server.8.gz":               "root:root 644",
		"/usr/share/bash-completion/completions/deviceaccess-server": "root:root 644",
		"/usr/share/zsh/vendor-completions/_deviceaccess-server":     "root:root 644",
		"/usr/share/doc/deviceaccess-server/examples/nginx.conf":     "root:root 644",
	} {
		if mode := h.mode(path); mode != want {
			h.Errorf("%s has %s, expected %s", path, mode, want)
		}
	}
}

// checkCode fails if the server or the lock does not have the code.
func (h *home) checkCode(when string) {
	h.Helper()
	if status := codeStatus(h.T, h.url, h.key, h.code); status != "set" {
		h.Errorf("%s, the code is %q", when, status)
	}
	checkPIN(h.T, h.lock, h.pin, when)
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

// device is what a server lists of a lock.
type device struct {
	DeviceID    string `json:"device_id"`
	DisplayName string `json:"display_name"`
}

func devicesOf(t *testing.T, url, key string) []device {
	t.Helper()
	var out struct{ Devices []device }
	api(t, http.DefaultClient, url, key, "/devices/list", object{}, &out)
	return out.Devices
}

// createCode creates an access code on the first lock, and waits until the lock has it.
func createCode(t *testing.T, url, key string) (id string) {
	t.Helper()
	var out struct {
		AccessCode struct {
			AccessCodeID string `json:"access_code_id"`
		} `json:"access_code"`
	}
	api(t, http.DefaultClient, url, key, "/access_codes/create",
		object{"device_id": devicesOf(t, url, key)[0].DeviceID, "name": "Later guest"}, &out)
	id = out.AccessCode.AccessCodeID
	testenv.Until(t, "the lock has the code", func() bool { return codeStatus(t, url, key, id) == "set" })
	return id
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
