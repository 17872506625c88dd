package chaos_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// field is what a server works on: the locks of a vendor's cloud, and endpoints. It can keep answers back.
type field struct {
	testing.TB
	vendor, endpoints *httptest.Server
	token             string
	locks, paths      []string

	mu    sync.Mutex
	held  chan struct{}        // while it is there, a request that is work waits until it is closed, or its sender gone
	air   map[string]bool      // what such requests are about
	first map[string]time.Time // when something was worked on for the first time since
	came  map[string]bool      // messages, by path and identifier
}

func newField(t testing.TB) *field {
	t.Helper()
	f := &field{TB: t, paths: []string{"/one", "/two"}, air: map[string]bool{}, came: map[string]bool{}}
	box := sandbox.New(sandbox.Options{Seed: 17, Speed: 20})
	t.Cleanup(box.Close)
	account, err := box.EnsureAccount(sandbox.AccountSpec{Key: "home", Profiles: []string{"august", "schlage"}, LocksPerProfile: 3})
	if err != nil {
		t.Fatal(err)
	}
	f.token = account.Token
	for _, l := range account.Locks {
		f.locks = append(f.locks, l.ID)
	}
	cloud := box.Handler()
	f.vendor = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/locks/"), "/")
		if lock == r.URL.Path || r.Method == http.MethodGet || what != "access_codes" || f.pass("lock "+lock, r) {
			cloud.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(f.vendor.Close)
	f.endpoints = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if f.pass("endpoint "+r.URL.Path, r) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.came[r.URL.Path+r.Header.Get("webhook-id")] = true
		}
	}))
	t.Cleanup(f.endpoints.Close)
	t.Cleanup(f.letsGo) // before the servers close, which wait for their requests
	return f
}

// all are the locks and the endpoints.
func (f *field) all() (all []string) {
	for _, l := range f.locks {
		all = append(all, "lock "+l)
	}
	for _, p := range f.paths {
		all = append(all, "endpoint "+p)
	}
	return all
}

// holds keeps back the answers from now on.
func (f *field) holds() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = make(chan struct{})
}

// letsGo gives answers again. Nothing is done of what nobody waits for any more.
func (f *field) letsGo() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held != nil {
		close(f.held)
		f.held, f.first = nil, map[string]time.Time{}
	}
}

// pass says whether a request is to be carried out. While answers are kept back none is.
func (f *field) pass(of string, r *http.Request) bool {
	body, err := io.ReadAll(r.Body) // only then it is noticed when its sender is gone
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	held := f.held
	if held == nil && f.first != nil && f.first[of].IsZero() {
		f.first[of] = time.Now()
	}
	if held != nil {
		f.air[of] = true
	}
	f.mu.Unlock()
	if held == nil {
		return true
	}
	select {
	case <-held:
	case <-r.Context().Done():
	}
	panic(http.ErrAbortHandler)
}

// inTheAir counts what requests without an answer are about.
func (f *field) inTheAir() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.air)
}

// seen is when each was worked on first.
func (f *field) seen() map[string]time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.first)
}

func (f *field) has(path string, event uuid.UUID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.came[path+event.String()]
}

// onLocks are the names of the codes that are really on locks, and on how many.
func (f *field) onLocks() map[string]int {
	f.Helper()
	on := map[string]int{}
	for _, lock := range f.locks {
		req, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.vendor.URL+"/sandbox/locks/"+lock+"/memory", nil)
		if err != nil {
			f.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+f.token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			f.Fatal(err)
		}
		var memory struct {
			Codes []struct{ Name string } `json:"access_codes"`
		}
		err = json.NewDecoder(res.Body).Decode(&memory)
		if res.Body.Close(); err != nil {
			f.Fatal(err)
		}
		for _, c := range memory.Codes {
			on[c.Name]++
		}
	}
	return on
}

// alone is a server with a database of its own.
type alone struct {
	testing.TB
	program, dir, url, key string
	cmd                    *exec.Cmd
	log                    *os.File
	pool                   *pgxpool.Pool
}

func newAlone(t testing.TB, program string) *alone {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaos-") //nolint:usetesting // another user has to enter it
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // so that it can
	}
	if err != nil {
		t.Fatal(err)
	}
	a := &alone{TB: t, program: program, dir: dir}
	if a.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if a.cmd != nil {
			_ = a.cmd.Process.Signal(os.Interrupt) // its database ends with it
			_ = a.cmd.Wait()
		}
		if b, _ := os.ReadFile(a.log.Name()); t.Failed() {
			t.Logf("the server's log ends with\n%s", b[max(0, len(b)-4000):])
		}
		a.log.Close()
		os.RemoveAll(dir)
	})
	return a
}

// start runs the server, and says when that was. It returns when requests are answered.
func (a *alone) start() (begun time.Time) {
	a.Helper()
	file := filepath.Join(a.dir, "ready.json")
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		a.Fatal(err)
	}
	a.cmd = exec.CommandContext(a.Context(), a.program, "serve", "--listen", "127.0.0.1:0", "--ready-file", file, "--data-dir", filepath.Join(a.dir, "data"), "--allow-webhook-prefix", "127.0.0.0/8")
	a.cmd.Cancel = func() error { return nil } // it is told to end when the test has
	a.cmd.Stdout, a.cmd.Stderr = a.log, a.log
	begun = time.Now()
	if err := a.cmd.Start(); err != nil {
		a.Fatal(err)
	}
	var ready struct{ URL string }
	until(a, "the server is ready", func() bool {
		b, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(b, &ready) == nil
	})
	a.url = ready.URL
	if a.pool != nil {
		a.pool.Close()
		a.pool = nil
	}
	return begun
}

// database is that of the server, until it ends.
func (a *alone) database() *pgxpool.Pool {
	a.Helper()
	if a.pool == nil {
		socket, err := os.ReadFile(filepath.Join(a.dir, "data/postgres/lock"))
		if err != nil {
			a.Fatal(err)
		}
		if a.pool, err = pgxpool.New(a.Context(), fmt.Sprintf("host=%s port=5432 user=postgres dbname=postgres sslmode=disable pool_max_conns=2", socket)); err != nil {
			a.Fatal(err)
		}
		a.Cleanup(a.pool.Close)
	}
	return a.pool
}

// run runs a command beside the server, and returns what it says.
func (a *alone) run(args ...string) string {
	a.Helper()
	cmd := exec.CommandContext(a.Context(), a.program, args...)
	cmd.Env = append(os.Environ(), "DEVICEACCESS_DATA_DIR="+filepath.Join(a.dir, "data"))
	out, err := cmd.Output()
	if err != nil {
		a.Fatalf("%v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// ask sends a request that has to succeed.
func (a *alone) ask(path string, in map[string]any) answer {
	a.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		a.Fatal(err)
	}
	out, err := (&client{url: a.url, key: a.key, http: http.DefaultClient}).once(a.Context(), path, "", body)
	if err != nil || out.status != http.StatusOK {
		a.Fatalf("%s: %d %s %v", path, out.status, out.text("error", "message"), err)
	}
	return out
}
