package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// stage is a moment of the first start: a file exists, or an SQL condition is true.
type stage struct{ file, sql string }

func (s stage) String() string { return s.file + s.sql }

// stages are the stages of a first start, in order.
var stages = []stage{
	{file: "data/postgres/lock"},
	{file: "data/postgres/*/data.incomplete"},
	{file: "data/postgres/*/data.incomplete/global/pg_control"},
	{file: "data/postgres/*/data.incomplete/base/4"},
	{file: "data/postgres/*/data/PG_VERSION"},
	{file: "data/postgres/*/data/postmaster.pid"},
	{sql: "to_regclass('goose_db_version') is not null"},
	{sql: "to_regclass('access_codes') is not null"},
	{sql: "to_regclass('river_job') is not null"},
	{file: "data/master.key"},
	{sql: "exists (select from server_keys)"},
	{sql: "exists (select from workspaces)"},
	{sql: "exists (select from credentials)"},
	{sql: "exists (select from devices)"},
	{file: "ready.json"},
}

// dsn returns the DSN of the private database of a server on p's data, if it has one.
func (p *program) dsn() (dsn string, ok bool) {
	socket, err := os.ReadFile(filepath.Join(p.dir, "data/postgres/lock"))
	if err != nil || len(socket) == 0 {
		return "", false
	}
	password, err := os.ReadFile(filepath.Join(p.dir, "data/postgres/password"))
	return fmt.Sprintf(
		"host=%s port=5432 user=postgres password=%s dbname=postgres sslmode=disable",
		socket,
		bytes.TrimSpace(password),
	), err == nil
}

// reached reports whether a server on p's data has reached a stage.
func (p *program) reached(s stage) bool {
	if s.file != "" {
		found, _ := filepath.Glob(filepath.Join(p.dir, s.file))
		return len(found) > 0
	}
	dsn, ok := p.dsn()
	if !ok {
		return false
	}
	conn, err := pgx.Connect(p.Context(), dsn)
	if err != nil {
		return false
	}
	defer conn.Close(context.WithoutCancel(p.Context()))
	var yes bool
	return conn.QueryRow(p.Context(), "select "+s.sql).Scan(&yes) == nil && yes
}

// childrenOf returns the running child processes of a process: initdb, or the first process of PostgreSQL.
func childrenOf(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// firstStarts is the variable with the number of first starts that the test kills at each stage. With 3, it kills the
// server, PostgreSQL, and both at each stage.
const firstStarts = "CHAOS_FIRST_STARTS"

// A first start is killed at each of its stages: the server, PostgreSQL, or both. Each next start gets further, and at
// the end everything exists exactly once.
func TestFirstStart_KilledAtEachStage(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("/proc is needed to find child processes")
	}
	starts, err := strconv.Atoi(cmp.Or(os.Getenv(firstStarts), "1"))
	if err != nil {
		t.Fatalf("%s: %v", firstStarts, err)
	}
	kinds := []string{"server", "postgres", "both"}
	for n := range starts {
		first := kinds[n%len(kinds)]
		t.Run(first, func(t *testing.T) {
			p := newEmpty(t)
			for i, s := range stages {
				p.killedAt(s, kinds[(n+i)%len(kinds)])
			}
			r, cmd := p.serve("--sandbox-speed", "100")
			p.furnish(r, "258013")
			before := p.inventory(r, r.APIKey)
			if want := len(sandbox.DefaultProfiles()); len(before.Locks) != want {
				t.Errorf("the sandbox has %d devices, not one of each of %d profiles", len(before.Locks), want)
			}
			p.kill(cmd, first)
			again, cmd := p.serve("--sandbox-speed", "100")
			if again.Workspace != r.Workspace {
				t.Errorf("it is workspace %s, was %s", again.Workspace, r.Workspace)
			}
			if err := p.inventory(again, again.APIKey).holds(before); err != nil {
				t.Error(err)
			}
			if n := strings.Count(p.ok("workspaces", "list"), "\n"); n != 1 {
				t.Errorf("there are %d workspaces, not one", n)
			}
			if left, _ := filepath.Glob(filepath.Join(p.dir, "data/postgres/*/*.incomplete")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			p.stop(cmd)
		})
	}
}

// withoutKeys masks the keys in the output of a server.
func withoutKeys(said []byte) []byte { return shownKeys.ReplaceAll(said, []byte("seam_…")) }

var shownKeys = regexp.MustCompile(`seam_\w+`)

// killedAt starts a server and kills it when it reaches a stage. It may be further by then.
func (p *program) killedAt(s stage, who string) {
	p.Helper()
	file := filepath.Join(p.dir, "ready.json")
	_ = os.Remove(file)
	if s.file == "data/postgres/lock" {
		who = "server" // other processes only report their version at this stage
	}
	var log bytes.Buffer
	cmd := p.command("serve", "--sandbox", "--listen", "127.0.0.1:0", "--ready-file", file)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	testenv.Until(p, fmt.Sprintf("the server reaches %s", s), func() bool {
		select {
		case <-ended:
			p.Fatalf("on the way to %s it has ended: %s", s, withoutKeys(log.Bytes()))
		default:
		}
		return p.reached(s)
	})
	p.Cleanup(func() {
		if p.Failed() {
			p.Logf("killed at %s: %s", s, withoutKeys(log.Bytes()))
		}
	})
	p.strike(cmd, who, ended)
}

// kill kills a server that is ready.
func (p *program) kill(cmd *exec.Cmd, who string) {
	p.Helper()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	p.strike(cmd, who, ended)
}

// strike kills and waits until the server has exited: without its database it exits on its own. A child that only
// reports its version may have exited already; then strike kills the next one.
func (p *program) strike(cmd *exec.Cmd, who string, ended <-chan struct{}) {
	p.Helper()
	var children []int
	if who != "server" {
		p.until(
			"it has started something",
			func() bool { children = childrenOf(cmd.Process.Pid); return len(children) > 0 },
		)
	}
	if who != "postgres" {
		_ = cmd.Process.Kill()
	}
	p.until("the server has exited", func() bool {
		if who != "server" {
			for _, pid := range children {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			children = childrenOf(cmd.Process.Pid)
		}
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}
