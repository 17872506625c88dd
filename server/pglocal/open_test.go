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
		// the variables of PostgreSQL's clients must have no effect
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

func TestOpenStartsAndStopsCluster(t *testing.T) {
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

// A command that has started the cluster does not disconnect another one that has joined it meanwhile.
func TestCloseWaitsForOtherCommands(t *testing.T) {
	t.Parallel()
	opt := pglocal.Options{Dir: seeded(t), NoSync: true}
	first, err := pglocal.Open(t.Context(), opt)
	ok(t, err)
	second, err := pglocal.Open(t.Context(), opt)
	ok(t, err)
	if command, err := pglocal.StartedByCommand(t.Context(), opt.Dir); err != nil || !command {
		t.Errorf("started by a command: %t, %v", command, err)
	}
	closed, limit := make(chan error, 1), &countingContext{Context: t.Context()}
	go func() { closed <- first.Close(limit) }()
	testenv.Until(t, "Close looks for other commands", func() bool {
		select {
		case err := <-closed:
			t.Fatalf("Close did not wait: %v", err)
		default:
		}
		return limit.waits.Load() >= 5
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
	if command, err := pglocal.StartedByCommand(t.Context(), opt.Dir); err != nil || command {
		t.Errorf("a server's cluster counts as started by a command: %t, %v", command, err)
	}
	if got := notes(t, c); !slices.Equal(got, []string{"second"}) {
		t.Errorf("rows = %q, want the one inserted through the second handle", got)
	}
}

func TestOpenWaitsForAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, dir string) (proceed func() error){
		"starting": func(t *testing.T, dir string) func() error {
			// the file appears when the server starts
			c := start(t, pglocal.Options{Dir: dir})
			path := filepath.Join(c.DataDir(), "postmaster.pid")
			ok(t, os.Rename(path, path+".hidden"))
			return func() error { return os.Rename(path+".hidden", path) }
		},
		"stopping": func(t *testing.T, dir string) func() error {
			lock, err := pglocal.TryLock(filepath.Join(dir, "lock"))
			ok(t, err)
			return lock.Release
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := seeded(t)
			proceed := prepare(t, dir)
			opened, limit := make(chan error, 1), &countingContext{Context: t.Context()}
			go func() {
				h, err := pglocal.Open(limit, pglocal.Options{Dir: dir, NoSync: true})
				if err == nil {
					err = errors.Join(insert(t.Context(), h.DSN("postgres"), "opened"), h.Close(t.Context()))
				}
				opened <- err
			}()
			// it does not wait before its first try
			testenv.Until(t, "Open tries again", func() bool {
				select {
				case err := <-opened:
					t.Fatalf("Open did not wait: %v", err)
				default:
				}
				return limit.waits.Load() >= 5
			})
			ok(t, proceed())
			ok(t, <-opened)
		})
	}
}

// countingContext counts the calls of Done, that is, how often a goroutine has started to wait.
type countingContext struct {
	context.Context
	waits atomic.Int32
}

func (p *countingContext) Done() <-chan struct{} {
	p.waits.Add(1)
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
		t.Errorf("Open = %v, want a timeout", err)
	}
}

func TestOpenByAnotherUser_NamesOwner(t *testing.T) {
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
		if want := "belongs to user"; err == nil || !strings.Contains(h.errors.String(), want) ||
			!strings.Contains(h.errors.String(), "permission denied") {
			t.Errorf(
				"Open by another user, server running %t: %v: %s: want an error with %q",
				running,
				err,
				&h.errors,
				want,
			)
		}
	}
}
