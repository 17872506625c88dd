package pglocal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// Helper processes are copies of this test binary. helperEnv says what a helper does instead of testing, and helperDir
// is its directory.
const (
	helperEnv = "PGLOCAL_TEST_HELPER"
	helperDir = "PGLOCAL_TEST_DIR"
)

// within bounds all waiting of a test.
var within = testenv.Timeout(testenv.WaitTimeout)

func TestMain(m *testing.M) {
	if what := os.Getenv(helperEnv); what != "" {
		if err := help(what, os.Getenv(helperDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(seedRoot)
		os.Exit(code)
	}))
}

// help runs in the helper process. It prints that it is ready, and ends when its stdin ends.
func help(what, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	opt := pglocal.Options{Dir: dir, NoSync: true}
	switch what {
	case "serve":
		c, err := pglocal.Start(ctx, opt)
		if err != nil {
			return err
		}
		if err := insert(ctx, c.DSN("postgres"), "helper"); err != nil {
			return err
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return c.Stop(ctx)
	case "open":
		h, err := pglocal.Open(ctx, opt)
		if err != nil {
			return err
		}
		err = insert(ctx, h.DSN("postgres"), "helper")
		fmt.Println("ready")
		return errors.Join(err, h.Close(ctx))
	default:
		return fmt.Errorf("unknown helper %q", what)
	}
}

// helper is a second process.
type helper struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	errors strings.Builder
}

// startHelper starts a helper and waits until it is ready or has ended.
func startHelper(t *testing.T, what, dir string, change func(*exec.Cmd)) *helper {
	t.Helper()
	exe, err := os.Executable()
	ok(t, err)
	h := &helper{cmd: exec.Command(exe)}
	h.cmd.Env = append(os.Environ(), helperEnv+"="+what, helperDir+"="+dir)
	h.cmd.Stderr = &h.errors
	h.stdin, err = h.cmd.StdinPipe()
	ok(t, err)
	out, err := h.cmd.StdoutPipe()
	ok(t, err)
	if change != nil {
		change(h.cmd)
	}
	ok(t, h.cmd.Start())
	t.Cleanup(func() { _ = h.cmd.Process.Kill(); _ = h.cmd.Wait() })
	_, _ = bufio.NewReader(out).ReadString('\n')
	return h
}

// need skips the test if there is no PostgreSQL, or the run must not use it.
func need(t *testing.T) {
	t.Helper()
	storetest.NeedPostgres(t)
	if _, err := pglocal.Locate(t.Context(), pglocal.Options{}); errors.Is(err, pglocal.ErrNoBinaries) {
		storetest.Missing(t, "%v", err)
	}
}

// start starts a cluster that is stopped after the test.
func start(t *testing.T, opt pglocal.Options) *pglocal.Cluster {
	t.Helper()
	need(t)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	opt.NoSync = true
	c, err := pglocal.Start(ctx, opt)
	ok(t, err)
	t.Cleanup(func() { stop(t, c) })
	return c
}

func stop(t *testing.T, c *pglocal.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	ok(t, c.Stop(ctx))
}

// scratch creates an empty directory that the server's user can enter, unlike t.TempDir.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := makeScratch()
	ok(t, err)
	t.Cleanup(func() { ok(t, os.RemoveAll(dir)) })
	return dir
}

func makeScratch() (string, error) {
	root := "/dev/shm"
	if _, err := os.Stat(root); err != nil {
		root = ""
	}
	dir, err := os.MkdirTemp(root, "pglocal-test-")
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

var (
	seedRoot string

	// seed is a directory with a cluster that has the table note, for copying: initdb takes a second.
	seed = sync.OnceValues(func() (string, error) {
		var err error
		if seedRoot, err = makeScratch(); err != nil {
			return "", err
		}
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		dir := filepath.Join(seedRoot, "cluster")
		c, err := pglocal.Start(ctx, pglocal.Options{Dir: dir, NoSync: true})
		if err != nil {
			return "", err
		}
		return dir, errors.Join(
			execute(ctx, c.DSN("postgres"), "create table note (text text primary key)"),
			c.Stop(ctx),
		)
	})
)

// seeded returns a directory with a stopped cluster.
func seeded(t *testing.T) string {
	t.Helper()
	need(t)
	from, err := seed()
	ok(t, err)
	dir := filepath.Join(scratch(t), "cluster")
	out, err := exec.Command("cp", "-a", from, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("copy %s: %v: %s", from, err, out)
	}
	return dir
}

func execute(ctx context.Context, dsn, stmt string, args ...any) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, stmt, args...)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

func insert(ctx context.Context, dsn, text string) error {
	return execute(ctx, dsn, "insert into note values ($1)", text)
}

// notes returns the rows of the table note.
func notes(t *testing.T, c *pglocal.Cluster) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
	ok(t, err)
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), "select text from note order by text")
	ok(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	ok(t, err)
	return texts
}

func setting(t *testing.T, c *pglocal.Cluster, name string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
	ok(t, err)
	defer conn.Close(context.Background())
	ok(t, conn.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&value))
	return value
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func waitDone(t *testing.T, c *pglocal.Cluster) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(within):
		t.Fatalf("the server has not stopped within %s", within)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run the server as another user")
	}
}

// asNobody makes cmd run as an unprivileged user; we are root.
func asNobody(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	acct := lookup(t, "nobody")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: acct}
}
