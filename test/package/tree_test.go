// Package packagetest installs the packages of the server in a Debian tree, whose systemd it boots in namespaces of its own.
// It needs root, mmdebstrap, and what `make package` has built, and runs only with TEST_PACKAGE=1.
package packagetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

const repository = "../.."

// need skips the test unless it was asked for.
func need(t *testing.T, programs ...string) {
	t.Helper()
	if os.Getenv("TEST_PACKAGE") != "1" {
		t.Skip("this test takes minutes and needs root: run make test-package")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Fatalf("%s is missing: install it with apt-get install %[1]s", p)
		}
	}
}

// run runs a command on this machine and returns its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = repository
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// tree is a Debian system with a running systemd. It shares the network with this machine.
type tree struct {
	*testing.T
	root string   // directory
	init string   // number of its first process on this machine
	env  []string // variables of commands
}

// newTree installs Debian with packages and boots it. It starts no services of these packages.
func newTree(t *testing.T, packages ...string) *tree {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "deviceaccess-") //nolint:usetesting // on disk, unlike /tmp on some machines
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the mounts are in namespaces that have ended
	d := &tree{T: t, root: filepath.Join(dir, "root")}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy"} {
		if value := os.Getenv(name); value != "" {
			d.env = append(d.env, name+"="+value)
		}
	}
	begun := time.Now()
	if tree := os.Getenv("DEBIAN_TREE"); tree != "" { // from an earlier run, to save minutes
		run(t, "cp", "--archive", tree, d.root)
		d.prepareApt()
		d.boot(filepath.Join(dir, "boot.log"))
		return d
	}
	args := []string{
		"--mode=root", "--variant=minbase", "--include=" + strings.Join(packages, ","), "--quiet",
		`--aptopt=Acquire::Languages "none"`, "--dpkgopt=path-exclude=/usr/share/locale/*",
		// as the guide advises
		`--essential-hook=mkdir -p "$1/etc/postgresql-common"`,
		`--essential-hook=echo "create_main_cluster = false" > "$1/etc/postgresql-common/createcluster.conf"`,
		`--customize-hook=chroot "$1" systemctl mask nginx.service caddy.service networking.service`,
		"bookworm", d.root,
	}
	if mirror := os.Getenv("DEBIAN_MIRROR"); mirror != "" {
		args = append(args, mirror)
	}
	run(t, "mmdebstrap", args...)
	t.Logf("installed Debian in %s", time.Since(begun).Round(time.Second))
	d.prepareApt()
	d.boot(filepath.Join(dir, "boot.log"))
	return d
}

// prepareApt lets apt reach the mirrors, and answers its questions with yes.
func (d *tree) prepareApt() {
	d.Helper()
	servers, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		d.Fatal(err)
	}
	_ = os.Remove(d.path("/etc/resolv.conf")) // it may be a link to a file of a service
	d.write("/etc/resolv.conf", string(servers), 0o644)
	d.write("/etc/apt/apt.conf.d/90test", "APT::Get::Assume-Yes \"true\";\nAcquire::Retries \"5\";\n", 0o644)
}

// boot starts systemd.
func (d *tree) boot(log string) {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), "./boot.sh", d.root)
	d.Cleanup(func() { removeCgroups(cmd.Process) }) // after begin's, which waits for the end
	s := d.begin("boot", cmd, log)
	testenv.UntilOr(d.T, "systemd runs", func() bool {
		if d.init == "" {
			pid := strconv.Itoa(cmd.Process.Pid)
			children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
			init := strings.TrimSpace(string(children))
			name, _ := os.ReadFile("/proc/" + init + "/comm")
			if init == "" || strings.TrimSpace(string(name)) != "systemd" {
				return false
			}
			d.init = init
		}
		state, _ := d.try("systemctl", "is-system-running") // fails if any unit of Debian has failed
		return strings.Contains(state, "running") || strings.Contains(state, "degraded")
	}, func() { d.Logf("boot.sh: %s", s.output()) })
}

// removeCgroups removes the cgroups of boot.sh.
func removeCgroups(boot *os.Process) {
	if boot == nil {
		return
	}
	for _, place := range []string{"/sys/fs/cgroup/systemd", "/sys/fs/cgroup"} {
		dir := fmt.Sprintf("%s/deviceaccess-test-%d", place, boot.Pid)
		for range 100 { // until the processes in them have ended
			_ = exec.Command("find", dir, "-depth", "-type", "d", "-delete").Run()
			if _, err := os.Stat(dir); err != nil {
				break
			}
			<-time.After(100 * time.Millisecond)
		}
	}
}

// path returns the path on this machine of a path in the tree. Its /run, /dev, and /proc cannot be reached so.
func (d *tree) path(inside string) string { return filepath.Join(d.root, inside) }

// command returns a command in the tree, which runs as root.
func (d *tree) command(args ...string) *exec.Cmd {
	d.Helper()
	return exec.CommandContext(d.Context(), "nsenter", slices.Concat([]string{
		"--target", d.init, "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--wd=/",
		"/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8",
		"DEBIAN_FRONTEND=noninteractive",
	}, d.env, args)...)
}

// shell runs commands of the guide in /root, with input at the keyboard, and returns their output.
func (d *tree) shell(script, input string) string {
	d.Helper()
	cmd := d.command("env", "--chdir=/root", "bash", "-euo", "pipefail", "-c", script)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := d.try("journalctl", "--no-pager", "--lines=100", "--unit=deviceaccess-server*")
		d.Fatalf("%s: %v\n%s\n%s", script, err, out, log)
	}
	return string(out)
}

// try runs a command in the tree and returns its output.
func (d *tree) try(args ...string) (string, error) {
	d.Helper()
	out, err := d.command(args...).CombinedOutput()
	return string(out), err
}

// run runs a command in the tree, which must succeed.
func (d *tree) run(args ...string) string {
	d.Helper()
	out, err := d.try(args...)
	if err != nil {
		d.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// systemctl runs systemctl, and shows the log of the unit if it fails.
func (d *tree) systemctl(verb, unit string) {
	d.Helper()
	if out, err := d.try("systemctl", verb, unit); err != nil {
		log, _ := d.try("journalctl", "--no-pager", "--lines=100", "--unit="+unit)
		d.Fatalf("systemctl %s %s: %v\n%s\n%s", verb, unit, err, out, log)
	}
}

// property returns a property of the server's unit.
func (d *tree) property(name string) string {
	d.Helper()
	return strings.TrimSpace(d.run("systemctl", "show", "--value", "--property="+name, serverUnit))
}

func (d *tree) read(inside string) string {
	d.Helper()
	b, err := os.ReadFile(d.path(inside))
	if err != nil {
		d.Fatal(err)
	}
	return string(b)
}

func (d *tree) write(inside, content string, mode os.FileMode) {
	d.Helper()
	path := d.path(inside)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		d.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		d.Fatal(err)
	}
}

// has reports whether a path exists in the tree.
func (d *tree) has(inside string) bool {
	_, err := os.Lstat(d.path(inside))
	return err == nil
}

// list returns the names in a directory of the tree.
func (d *tree) list(inside string) (names []string) {
	d.Helper()
	entries, err := os.ReadDir(d.path(inside))
	if err != nil {
		d.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// mode returns owner and permissions, such as "root:root 600".
func (d *tree) mode(inside string) string {
	d.Helper()
	return strings.TrimSpace(d.run("stat", "--format=%U:%G %a", inside))
}

// service is a program that the test runs in the tree.
type service struct {
	*tree
	name  string
	cmd   *exec.Cmd
	log   string        // path of its output
	ended chan struct{} // closed when it has ended
	err   error         // how it ended
}

// begin starts a command, which is ended with the test.
func (d *tree) begin(name string, cmd *exec.Cmd, path string) *service {
	d.Helper()
	log, err := os.Create(path)
	if err != nil {
		d.Fatal(err)
	}
	defer log.Close() // the program has its own descriptor
	s := &service{tree: d, name: name, cmd: cmd, log: path, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	go func() { s.err = cmd.Wait(); close(s.ended) }()
	d.Cleanup(func() { <-s.ended })
	return s
}

// output returns what the program has printed.
func (s *service) output() string {
	b, _ := os.ReadFile(s.log)
	return string(b)
}

// freePort returns a port that no program listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
