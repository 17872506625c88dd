package pglocal_test

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// TestAsAnOrdinaryUser runs tests again as an unprivileged user if this process is root.
func TestAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	need(t)
	home := scratch(t)
	other := lookup(t, "nobody")
	ok(t, os.Chown(home, int(other.Uid), int(other.Gid)))
	cmd := exec.Command(
		copyOfTestBinary(t),
		"-test.v",
		"-test.run=^(TestFirstStart|TestServerIsPrivate|TestKilledServer|TestOneProcess|TestServerDies|"+
			"TestOrphan|TestPidFile|TestOpenUses|TestOpenStarts|TestBelongs)",
	)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"))
	cmd.Dir = home
	asNobody(t, cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as an unprivileged user: %v\n%s", err, out)
	}
	if passed := strings.Count(string(out), "\n--- PASS"); passed < 10 || strings.Contains(string(out), "--- SKIP") {
		t.Errorf("as an unprivileged user %d tests passed, want 10 and none skipped:\n%s", passed, out)
	}
}

func TestBelongsToAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may use any user's data; TestAsAnOrdinaryUser runs this unprivileged")
	}
	// "/" belongs to root everywhere
	if _, err := pglocal.ServerAccount("/"); err == nil || !strings.Contains(err.Error(), "belongs to user root") {
		t.Errorf("data of root for another user: %v, want its owner", err)
	}
}

func TestRootCannotUseWhatItsServerCannotReach(t *testing.T) {
	t.Parallel()
	needRoot(t)
	need(t)
	closed := filepath.Join(scratch(t), "closed")
	ok(t, os.Mkdir(closed, 0o700))
	dir := filepath.Join(closed, "deep", "down")
	_, err := pglocal.Start(t.Context(), pglocal.Options{Dir: dir})
	var unreachable *pglocal.UnreachableError
	if !errors.As(err, &unreachable) || unreachable.Barrier != closed || unreachable.Path != dir {
		t.Fatalf("Start = %v, want an UnreachableError that names %s", err, closed)
	}
	if !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("Start = %v, want a remedy", err)
	}
	if exists(filepath.Join(closed, "deep")) {
		t.Error("a directory was created that the server cannot use")
	}
}

func TestRootKeepsTheOwnerOfTheData(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir := seeded(t)
	data := filepath.Dir(globOne(t, filepath.Join(dir, "*", "data", "PG_VERSION")))
	other := lookup(t, "nobody")
	out, err := exec.Command("chown", "-R", "nobody", data).CombinedOutput()
	if err != nil {
		t.Fatalf("chown: %v: %s", err, out)
	}
	c := start(t, pglocal.Options{Dir: dir})
	info, err := os.Stat(filepath.Join(c.Socket(), ".s.PGSQL.5432"))
	ok(t, err)
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != other.Uid {
		t.Errorf("the server runs as %d, want the owner of the data, %d", uid, other.Uid)
	}
}

func TestDataOfRootIsRefused(t *testing.T) {
	t.Parallel()
	needRoot(t)
	if _, err := pglocal.ServerAccount("/"); err == nil || !strings.Contains(err.Error(), "chown") {
		t.Errorf("data of root: %v, want a remedy", err)
	}
}

func lookup(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	ok(t, err)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	ok(t, err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	ok(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// copyOfTestBinary returns a copy that other users can run: go test keeps its own in a private directory.
func copyOfTestBinary(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	ok(t, err)
	// not /dev/shm, which some machines mount noexec
	dir, err := os.MkdirTemp("", "pglocal-test-")
	ok(t, err)
	t.Cleanup(func() { ok(t, os.RemoveAll(dir)) })
	ok(t, os.Chmod(dir, 0o755))
	// use cp: a file that we write could still be open in a process that another test is forking
	path := filepath.Join(dir, "pglocal.test")
	if out, err := exec.Command("cp", exe, path).CombinedOutput(); err != nil {
		t.Fatalf("copy the test binary: %v: %s", err, out)
	}
	ok(t, os.Chmod(path, 0o755))
	return path
}

// Root gets a warning that names the remedy where the server's user is not its own. Commands do not repeat it.
func TestSharedUserIsNamed(t *testing.T) {
	t.Parallel()
	needRoot(t)
	need(t)
	for name, owner := range map[string]string{"nobody": "nobody", "another user": "daemon"} {
		dir := seeded(t)
		user := lookup(t, owner)
		out, err := exec.Command("chown", "-R", strconv.Itoa(int(user.Uid)), dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var said strings.Builder
		log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
		stop(t, start(t, pglocal.Options{Dir: dir, Log: log}))
		if warned := strings.Contains(said.String(), "useradd"); warned != (owner == "nobody") {
			t.Errorf("%s: the log says %q", name, &said)
		}
		said.Reset()
		h, err := pglocal.Open(t.Context(), pglocal.Options{Dir: dir, NoSync: true, Log: log})
		ok(t, err)
		ok(t, h.Close(t.Context()))
		if said.Len() > 0 {
			t.Errorf("%s: a command says %q", name, &said)
		}
	}
}
