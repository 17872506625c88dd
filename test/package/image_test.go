package packagetest

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

// The image runs without a shell, as its own user, on a read-only file system, serves a database of the machine, and
// sets a code on a lock, with the commands of the guide "Run it".
func TestImage(t *testing.T) {
	need(t, "podman", "runc")
	lab := zwave.Start(t, zwave.Plain)
	c := newContainers(t)
	g := readGuide(t)
	archive, secrets := c.archive("deviceaccess-server_*_image.tar"), storetest.Dir(t)
	for name, secret := range map[string]string{
		"database-url": overTCP(t, storetest.New(t)),
		"master-key":   "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
	} {
		path := filepath.Join(secrets, name)
		if err := os.WriteFile(path, []byte(secret), 0o400); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 65532, 65532); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	c.shell(g.next("Containers",
		"deviceaccess-server_0.1.0_image.tar", archive,
		"--publish 127.0.0.1:8500:8500", c.options(),
		"/etc/deviceaccess/secrets", secrets,
		"deviceaccess-server:0.1.0", "deviceaccess-server:"+version(archive)), "")
	c.connect(g, lab)
	t.Logf("followed the guide from the image to a code on a lock in %s", time.Since(begun).Round(time.Second))

	image := strings.TrimSpace(c.podman("inspect", "--format={{.ImageName}}", "deviceaccess"))
	if user := strings.TrimSpace(
		c.podman("image", "inspect", "--format={{.Config.User}}", image),
	); user != "65532:65532" {
		t.Errorf("the image runs as %s", user)
	}
	t.Log(c.podman(append(append([]string{"run", "--rm", "--read-only"}, c.limits...), image, "version")...))
	shell := slices.Concat(c.global, []string{"run", "--rm", "--entrypoint=/bin/sh"}, c.limits,
		[]string{image, "-c", "true"})
	if out, err := exec.CommandContext(t.Context(), "podman", shell...).CombinedOutput(); err == nil {
		t.Errorf("the image has a shell: %s", out)
	}
	c.stop()
	t.Run("standalone", func(t *testing.T) { standalone(t, g, zwave.Start(t, zwave.Plain)) })
	g.finish("Containers")
}

// standalone runs the image with PostgreSQL, whose data survives the container.
func standalone(t *testing.T, g *guide, lab *zwave.Gateway) {
	g, c := g.with(t), newContainers(t)
	archive := c.archive("deviceaccess-server_*_image_standalone_" + runtime.GOARCH + ".tar")
	start := g.next("Containers",
		"deviceaccess-server_0.1.0_image_standalone_amd64.tar", archive,
		"--publish 127.0.0.1:8500:8500", c.options(),
		"deviceaccess-server:0.1.0-", "deviceaccess-server:"+version(archive)+"-")
	g.used["Containers"] = 1 // the commands that connect a lock are the same
	begun := time.Now()
	c.shell(start, "")
	key, code := c.connect(g, lab)
	g.used["Containers"]++
	took := time.Since(begun).Round(time.Second)
	t.Logf("followed the guide from the image with PostgreSQL to a code on a lock in %s", took)
	if user := strings.TrimSpace(c.podman("exec", "deviceaccess", "id", "--user")); user != "65532" {
		t.Errorf("the image runs as user %s", user)
	}
	c.podman("exec", "deviceaccess", "test", "-s", "/var/lib/deviceaccess/master.key")
	c.stop()
	c.podman("rm", "deviceaccess")
	c.shell(start[strings.Index(start, "podman run"):], "")
	c.await()
	if status := codeStatus(t, c.url, key, code); status != "set" {
		t.Errorf("in a new container with the same volume, the code is %q", status)
	}
	c.stop()
}

// containers runs podman with its own storage.
type containers struct {
	*testing.T
	global []string // options of each command
	limits []string // options of each container
	dir    string   // where the commands of the guide run
	port   int
	url    string
}

func newContainers(t *testing.T) *containers {
	t.Helper()
	c := &containers{
		T: t,
		global: []string{
			"--root=" + t.TempDir(), "--runroot=" + t.TempDir(), "--storage-driver=vfs", "--cgroup-manager=cgroupfs",
			"--runtime=runc", "--events-backend=file",
		},
		limits: []string{"--network=host", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"},
		dir:    t.TempDir(),
		port:   freePort(t),
	}
	c.url = fmt.Sprintf("http://127.0.0.1:%d", c.port)
	t.Cleanup(func() {
		_ = exec.Command("podman", append(c.global, "rm", "--force", "--volumes", "deviceaccess")...).Run()
	})
	return c
}

// archive returns the path of a file of dist/.
func (c *containers) archive(pattern string) string {
	c.Helper()
	found, err := filepath.Glob(filepath.Join(repository, "dist", pattern))
	if err != nil || len(found) != 1 {
		c.Fatalf("make package has written %v: %v", found, err)
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		c.Fatal(err)
	}
	return path
}

// version returns the version in the name of an archive.
func version(archive string) string { return strings.Split(filepath.Base(archive), "_")[1] }

func (c *containers) podman(args ...string) string {
	c.Helper()
	return run(c.T, "podman", append(c.global, args...)...)
}

// options returns what `podman run` needs in place of a published port, since this machine may have no networks.
func (c *containers) options() string {
	return strings.Join(append(c.limits,
		fmt.Sprintf("--env=DEVICEACCESS_LISTEN=127.0.0.1:%d", c.port), "--env=DEVICEACCESS_SERVER="+c.url), " ")
}

// shell runs commands of the guide with input at the keyboard, and returns their output.
func (c *containers) shell(script, input string) string {
	c.Helper()
	podman := "podman() { command podman " + strings.Join(c.global, " ") + ` "$@"; }` + "\n"
	cmd := exec.CommandContext(c.Context(), "bash", "-euo", "pipefail", "-c", podman+script)
	cmd.Dir, cmd.Stdin = c.dir, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		logs, _ := exec.Command("podman", append(c.global, "logs", "deviceaccess")...).CombinedOutput()
		c.Fatalf("%s: %v\n%s\n%s", script, err, out, logs)
	}
	return string(out)
}

// connect waits for the server, connects a gateway, and sets a code, as the guide says.
func (c *containers) connect(g *guide, lab *zwave.Gateway) (key, code string) {
	c.Helper()
	c.await()
	c.shell(g.next("Containers", "ws://gateway.example.com:3000", lab.URL), "")
	secret, err := os.ReadFile(filepath.Join(c.dir, "api-key"))
	if err != nil {
		c.Fatal(err)
	}
	key = strings.TrimSpace(string(secret))
	name := lockName(c.T, c.url, key)
	const pin = "4713"
	code = lastID(c.T, c.shell(g.next("Containers", "Front Door", name), pin+"\n"))
	checkPIN(c.T, lab.Locks()[0], pin, "at the end of the guide")
	return key, code
}

// await waits until the container serves.
func (c *containers) await() {
	c.Helper()
	testenv.UntilOr(c.T, "the container is healthy", func() bool {
		res, err := http.Get(c.url + "/health") //nolint:gosec // local
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}, func() { c.Log(c.podman("logs", "deviceaccess")) })
}

// stop stops the container, which must end without an error.
func (c *containers) stop() {
	c.Helper()
	c.podman("stop", "--time=30", "deviceaccess")
	if code := strings.TrimSpace(c.podman("inspect", "--format={{.State.ExitCode}}", "deviceaccess")); code != "0" {
		c.Errorf("the stopped container has exit code %s", code)
	}
}

// overTCP returns the URL of a database at an address that containers reach. The socket of the database is in a directory
// that other users cannot enter.
func overTCP(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the database has no URL")
	}
	query := u.Query()
	socket := query.Get("host")
	if !filepath.IsAbs(socket) {
		return dsn
	}
	socket = filepath.Join(socket, ".s.PGSQL."+cmp.Or(query.Get("port"), "5432"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer near.Close()
				far, err := net.Dial("unix", socket)
				if err != nil {
					return
				}
				defer far.Close()
				go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
				_, _ = io.Copy(near, far)
			}()
		}
	}()
	query.Set("host", "127.0.0.1")
	query.Set("port", fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
	u.RawQuery = query.Encode()
	return u.String()
}
