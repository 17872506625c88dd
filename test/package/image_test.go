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
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

// The image runs without a shell, as its own user, on a read-only file system, and serves a database of the machine.
func TestImage(t *testing.T) {
	need(t, "podman", "runc")
	dsn := overTCP(t, storetest.New(t))
	archives, err := filepath.Glob(repository + "/dist/*_image.tar")
	if err != nil || len(archives) != 1 {
		t.Fatalf("make package has written %v: %v", archives, err)
	}
	archive, err := filepath.Abs(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := storetest.Dir(t)
	global := []string{
		"--root=" + t.TempDir(), "--runroot=" + t.TempDir(), "--storage-driver=vfs", "--cgroup-manager=cgroupfs",
		"--runtime=runc", "--events-backend=file",
	}
	podman := func(args ...string) string { t.Helper(); return run(t, "podman", append(global, args...)...) }
	loaded := lastLine(podman("load", "--input", archive))
	image := loaded[strings.LastIndex(loaded, " ")+1:]
	if !strings.Contains(image, "/deviceaccess-server:") {
		t.Errorf("the image is named %s", image)
	}
	user := podman("image", "inspect", "--format={{.Config.User}}", image)
	if strings.TrimSpace(user) != "65532:65532" {
		t.Errorf("the image runs as %s", user)
	}
	limits := []string{"--network=host", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--read-only"}
	version := podman(append(append([]string{"run", "--rm"}, limits...), image, "version")...)
	t.Log(version)
	shell := append(append(append(global, "run", "--rm", "--entrypoint=/bin/sh"), limits...), image, "-c", "true")
	if out, err := exec.CommandContext(t.Context(), "podman", shell...).CombinedOutput(); err == nil {
		t.Errorf("the image has a shell: %s", out)
	}

	for name, secret := range map[string]string{
		"database-url": dsn,
		"master-key":   "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(secret), 0o400); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 65532, 65532); err != nil {
			t.Fatal(err)
		}
	}
	port := freePort(t)
	args := append([]string{"run", "--detach", "--name=server", "--tmpfs=/tmp"}, limits...)
	args = append(args, "--volume="+dir+":/run/secrets:ro",
		"--env=DEVICEACCESS_DATABASE_URL_FILE=/run/secrets/database-url",
		"--env=DEVICEACCESS_MASTER_KEY_FILE=/run/secrets/master-key",
		fmt.Sprintf("--env=DEVICEACCESS_LISTEN=127.0.0.1:%d", port),
		"--env=DEVICEACCESS_SANDBOX=true", "--env=DEVICEACCESS_SANDBOX_SPEED=20")
	podman(append(args, image)...)
	t.Cleanup(func() { _ = exec.Command("podman", append(global, "rm", "--force", "server")...).Run() })
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	testenv.UntilOr(t, "the container is healthy", func() bool {
		res, err := http.Get(base + "/health") //nolint:gosec // local
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}, func() { t.Log(podman("logs", "server")) })
	key := keyIn(t, podman("exec", "server", "deviceaccess-server", "keys", "create", "--name", "test", "--quiet"))
	createCode(t, base, key)
	podman("stop", "--time=30", "server")
	if code := strings.TrimSpace(podman("inspect", "--format={{.State.ExitCode}}", "server")); code != "0" {
		t.Errorf("the stopped container has exit code %s", code)
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
