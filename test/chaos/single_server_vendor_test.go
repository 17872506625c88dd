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

// field is what a server works on: the locks of a vendor's cloud, and endpoints. It can hold responses.
type field struct {
	testing.TB
	vendor, endpoints *httptest.Server
	token             string
	locks, paths      []string

	mu    sync.Mutex
	held  chan struct{}        // while set, requests wait until it is closed or their sender exits
	air   map[string]bool      // objects of the waiting requests
	first map[string]time.Time // first request since then, by object
	came  map[string]bool      // messages by path and id
}

func newField(t testing.TB) *field {
	t.Helper()
	f := &field{
		TB:    t,
		paths: []string{"/one", "/two"},
		air:   map[string]bool{},
		came:  map[string]bool{},
	}
	box := sandbox.New(sandbox.Options{Seed: 17, Speed: 20})
	t.Cleanup(box.Close)
	account, err := box.EnsureAccount(
		sandbox.AccountSpec{Key: "home", Profiles: []string{"august", "schlage"}, LocksPerProfile: 3},
	)
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
	t.Cleanup(f.letsGo) // before the servers close, since they wait for their requests
	return f
}

// all returns the locks and the endpoints.
func (f *field) all() (all []string) {
	for _, l := range f.locks {
		all = append(all, "lock "+l)
	}
	for _, p := range f.paths {
		all = append(all, "endpoint "+p)
	}
	return all
}

// holds holds all responses from now on.
func (f *field) holds() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = make(chan struct{})
}

// letsGo releases the responses. Requests whose sender has exited have no effect.
func (f *field) letsGo() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held != nil {
		close(f.held)
		f.held, f.first = nil, map[string]time.Time{}
	}
}

// pass reports whether a request is carried out. While responses are held, none is.
func (f *field) pass(of string, r *http.Request) bool {
	body, err := io.ReadAll(r.Body) // only then does the server notice that the sender has exited
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

// inTheAir returns how many objects have waiting requests.
func (f *field) inTheAir() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.air)
}

// seen returns the time of the first request by object.
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

// onLocks returns the names of the codes in the memories of locks, with their numbers.
func (f *field) onLocks() map[string]int {
	f.Helper()
	on := map[string]int{}
	for _, lock := range f.locks {
		req, err := http.NewRequestWithContext(
			f.Context(),
			http.MethodGet,
			f.vendor.URL+"/sandbox/locks/"+lock+"/memory",
			nil,
		)
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

// alone is a server with a private database.
type alone struct {
	testing.TB
	program, dir, url, key string
	cmd                    *exec.Cmd
	log                    *os.File
	pool                   *pgxpool.Pool
	subscribed             time.Time // all endpoints receive the events of later transactions
}

func newAlone(t testing.TB, program string) *alone {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaos-") //nolint:usetesting // another user must be able to enter it
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

// start starts the server and returns the time of its start once it answers requests.
func (a *alone) start() (begun time.Time) {
	a.Helper()
	file := filepath.Join(a.dir, "ready.json")
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		a.Fatal(err)
	}
	a.cmd = exec.CommandContext(
		a.Context(),
		a.program,
		"serve",
		"--listen",
		"127.0.0.1:0",
		"--ready-file",
		file,
		"--data-dir",
		filepath.Join(a.dir, "data"),
		"--allow-webhook-prefix",
		"127.0.0.0/8",
	)
	a.cmd.Cancel = func() error { return nil } // the test ends it in its cleanup
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

// database returns a pool for the server's database, until it ends.
func (a *alone) database() *pgxpool.Pool {
	a.Helper()
	if a.pool == nil {
		socket, err := os.ReadFile(filepath.Join(a.dir, "data/postgres/lock"))
		if err != nil {
			a.Fatal(err)
		}
		password, err := os.ReadFile(filepath.Join(a.dir, "data/postgres/password"))
		if err != nil {
			a.Fatal(err)
		}
		if a.pool, err = pgxpool.New(
			a.Context(),
			fmt.Sprintf("host=%s port=5432 user=postgres password=%s dbname=postgres sslmode=disable pool_max_conns=2",
				socket, bytes.TrimSpace(password)),
		); err != nil {
			a.Fatal(err)
		}
		a.Cleanup(a.pool.Close)
	}
	return a.pool
}

// run runs a command next to the server and returns its output.
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

// ask sends a request that must succeed.
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
