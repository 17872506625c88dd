package pglocal_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestOpenUsesTheServerOfAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	c := start(t, pglocal.Options{Dir: dir})
	h := startHelper(t, "open", dir, func(cmd *exec.Cmd) {
		// the variables of PostgreSQL's own clients must not lead astray
		cmd.Env = append(cmd.Env, "PGHOST=/nowhere", "PGPORT=1", "PGUSER=x", "PGDATABASE=x", "PGSSLMODE=require")
	})
	if err := h.cmd.Wait(); err != nil {
		t.Fatalf("Open in a second process: %v: %s", err, &h.errors)
	}
	select {
	case <-c.Done():
		t.Fatalf("Close in the second process has stopped the server: %v", c.Err())
	default:
	}
	if got := notes(t, c); !slices.Equal(got, []string{"helper"}) {
		t.Errorf("rows = %q, want the one of the second process", got)
	}
}

func TestOpenStartsAndStopsWhatDoesNotRun(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	h, err := pglocal.Open(t.Context(), pglocal.Options{Dir: dir, NoSync: true})
	ok(t, err)
	ok(t, insert(t.Context(), h.DSN("postgres"), "opened"))
	ok(t, h.Close(t.Context()))
	c := start(t, pglocal.Options{Dir: dir})
	if got := notes(t, c); !slices.Equal(got, []string{"opened"}) {
		t.Errorf("rows = %q, want the one inserted through the handle", got)
	}
}

// Whoever has started the cluster for a moment does not cut off another who has joined it meanwhile.
func TestCloseWaitsForOthers(t *testing.T) {
	t.Parallel()
	opt := pglocal.Options{Dir: seeded(t), NoSync: true}
	first, err := pglocal.Open(t.Context(), opt)
	ok(t, err)
	second, err := pglocal.Open(t.Context(), opt)
	ok(t, err)
	if command, err := pglocal.ByCommand(t.Context(), opt.Dir); err != nil || !command {
		t.Errorf("it is there for a command: %t, %v", command, err)
	}
	closed, patience := make(chan error, 1), &patience{Context: t.Context()}
	go func() { closed <- first.Close(patience) }()
	testenv.Until(t, "Close looks for others", func() bool {
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait: %v", err)
		default:
		}
		return patience.asked.Load() >= 5
	})
	ok(t, insert(t.Context(), second.DSN("postgres"), "second"))
	ok(t, second.Close(t.Context()))
	ok(t, <-closed)

	first, err = pglocal.Open(t.Context(), opt)
	ok(t, err)
	second, err = pglocal.Open(t.Context(), opt)
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ok(t, first.Close(ctx))
	ok(t, second.Close(t.Context()))
	c := start(t, opt)
	if command, err := pglocal.ByCommand(t.Context(), opt.Dir); err != nil || command {
		t.Errorf("a server's is there for a command: %t, %v", command, err)
	}
	if got := notes(t, c); !slices.Equal(got, []string{"second"}) {
		t.Errorf("rows = %q, want the one inserted through the second handle", got)
	}
}

func TestOpenWaitsForAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, dir string) (proceed func() error){
		"that is starting": func(t *testing.T, dir string) func() error {
			// the file appears when the server does
			c := start(t, pglocal.Options{Dir: dir})
			path := filepath.Join(c.DataDir(), "postmaster.pid")
			ok(t, os.Rename(path, path+".hidden"))
			return func() error { return os.Rename(path+".hidden", path) }
		},
		"that is stopping": func(t *testing.T, dir string) func() error {
			lock, err := pglocal.TryLock(filepath.Join(dir, "lock"))
			ok(t, err)
			return lock.Release
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := seeded(t)
			proceed := prepare(t, dir)
			opened, patience := make(chan error, 1), &patience{Context: t.Context()}
			go func() {
				h, err := pglocal.Open(patience, pglocal.Options{Dir: dir, NoSync: true})
				if err == nil {
					err = errors.Join(insert(t.Context(), h.DSN("postgres"), "opened"), h.Close(t.Context()))
				}
				opened <- err
			}()
			testenv.Until(t, "Open tries again", func() bool { // before it has tried, it asks nothing
				select {
				case err := <-opened:
					t.Fatalf("Open did not wait: %v", err)
				default:
				}
				return patience.asked.Load() >= 5
			})
			ok(t, proceed())
			ok(t, <-opened)
		})
	}
}

// patience is a context that counts how often somebody has begun to wait until it ends, or for something else.
type patience struct {
	context.Context
	asked atomic.Int32
}

func (p *patience) Done() <-chan struct{} {
	p.asked.Add(1)
	return p.Context.Done()
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := seeded(t)
	lock, err := pglocal.TryLock(filepath.Join(dir, "lock"))
	ok(t, err)
	defer lock.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := pglocal.Open(ctx, pglocal.Options{Dir: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open = %v, want that its time was up", err)
	}
}

func TestOpenByAnotherUserSaysWhoseItIs(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir := seeded(t)
	exe := copyOfTestBinary(t)
	for _, running := range []bool{false, true} {
		if running {
			start(t, pglocal.Options{Dir: dir})
		}
		h := startHelper(t, "open", dir, func(cmd *exec.Cmd) {
			cmd.Path = exe
			cmd.Dir = "/"
			asNobody(t, cmd)
		})
		err := h.cmd.Wait()
		if want := "belongs to user"; err == nil || !strings.Contains(h.errors.String(), want) || !strings.Contains(h.errors.String(), "permission denied") {
			t.Errorf("Open by another user, server running %t: %v: %s: want an error with %q", running, err, &h.errors, want)
		}
	}
}
