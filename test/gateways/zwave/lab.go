// Package zwave provides a Z-Wave gateway for tests: the real zwave-js-server and zwave-js, with mock locks and
// thermostats.
package zwave

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
)

//go:embed package.json package-lock.json .npmrc *.cjs
var files embed.FS

// Profile is a kind of device; locks.cjs and thermostats.cjs describe them.
type Profile string

// The kinds of locks.
const (
	Plain Profile = "plain" // User Code version 1
	// OneLength is like Plain, but all PINs must have 6 digits.
	OneLength Profile = "one_length"
	// Supervised has User Code version 2, Supervision, and time frames, and does not report its bolt.
	Supervised Profile = "supervised"
	Masked     Profile = "masked" // shows stars instead of PINs
	Users      Profile = "users"  // User Credential: users with names
)

// The kinds of thermostats.
const (
	// Wall heats and cools, has a fan and a hygrometer, and measures whole °F.
	Wall Profile = "wall"
	// Radiator only heats, has Supervision, and measures half °C.
	Radiator Profile = "radiator"
)

// Slots is the number of code slots of a lock.
const Slots = 10

const (
	installTimeout   = 5 * time.Minute
	interviewTimeout = 6 * time.Minute // of all locks, on a busy machine
	startTimeout     = 2 * time.Minute
	callTimeout      = 3 * time.Minute // includes an interview
)

// Gateway is a running zwave-js-server.
type Gateway struct {
	// URL is the WebSocket URL of zwave-js-server.
	URL string

	control string
	process *gateways.Process
	options options
	lab     *gateways.Lab
	dir     string
	free    map[Profile]chan *Lock
}

type options struct {
	Locks  []lockOptions `json:"locks"`
	Cache  string        `json:"cache"`
	Memory string        `json:"memory"`
	Port   int           `json:"port"`
}

type lockOptions struct {
	ID      int     `json:"id"`
	Profile Profile `json:"profile"`
	Slots   int     `json:"slots"`
}

// Start starts a gateway with its own locks, which ends with the test. If Node.js or npm is missing, the test is
// skipped, or fails with REQUIRE_ALL=1.
func Start(t testing.TB, profiles ...Profile) *Gateway {
	t.Helper()
	gateways.Require(t)
	g, err := start(profiles)
	report(t, err)
	t.Cleanup(g.stop)
	return g
}

var (
	stopShared = func() {}
	shared     = sync.OnceValues(func() (*Gateway, error) {
		g, err := start([]Profile{Plain, Plain, Supervised, Masked, Users, OneLength, Wall, Radiator})
		if err == nil {
			stopShared = g.stop
		}
		return g, err
	})
)

// Shared returns a gateway that the package's tests share; each test leases locks. It runs until StopShared.
func Shared(t testing.TB) *Gateway {
	t.Helper()
	gateways.Require(t)
	g, err := shared()
	report(t, err)
	return g
}

// StopShared stops the shared gateway, if there is one. TestMain calls it after the tests.
func StopShared() { stopShared() }

func report(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, gateways.ErrMissing):
		storetest.Missing(t, "%v", err)
	case err != nil:
		t.Fatalf("start the Z-Wave lab: %v", err)
	}
}

func start(profiles []Profile) (*Gateway, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	lab, err := gateways.Install(ctx, "zwave", files, 20)
	if err != nil {
		return nil, err
	}
	g := &Gateway{lab: lab, free: map[Profile]chan *Lock{}}
	name := ""
	for i, profile := range profiles {
		// node 1 is the controller
		g.options.Locks = append(g.options.Locks, lockOptions{ID: i + 2, Profile: profile, Slots: Slots})
		name += "-" + string(profile)
	}
	network, err := gateways.Hash(files, "locks.cjs", "thermostats.cjs")
	if err != nil {
		return nil, err
	}
	interviewed := filepath.Join(lab.Cache, "interviewed-"+network+name)
	if err := gateways.CreateOnce(ctx, interviewed, g.interview); err != nil {
		return nil, err
	}
	if g.dir, err = os.MkdirTemp("", "zwave-lab-"); err != nil {
		return nil, err
	}
	if err := os.CopyFS(g.dir, os.DirFS(interviewed)); err != nil {
		return nil, err
	}
	g.options.Cache, g.options.Memory = g.dir, filepath.Join(g.dir, "locks.json")
	if err := g.run(startTimeout); err != nil {
		_ = os.RemoveAll(g.dir)
		return nil, err
	}
	for _, l := range g.options.Locks {
		if g.free[l.Profile] == nil {
			g.free[l.Profile] = make(chan *Lock, len(profiles))
		}
		g.free[l.Profile] <- &Lock{gateway: g, ID: l.ID, Profile: l.Profile}
	}
	return g, nil
}

// interview runs the gateway once, so that later runs find in dir what it has learned about its locks, which takes
// long.
func (g *Gateway) interview(dir string) error {
	g.options.Cache, g.options.Memory = dir, filepath.Join(dir, "locks.json")
	if err := g.run(interviewTimeout); err != nil {
		return err
	}
	err := g.do(context.Background(), 0, "flush", nil, nil)
	g.process.Kill()
	g.options.Port = 0
	return errors.Join(err, os.RemoveAll(filepath.Join(dir, "locks")))
}

func (g *Gateway) run(within time.Duration) error {
	arguments, err := json.Marshal(g.options)
	if err != nil {
		return err
	}
	var ready struct {
		URL     string `json:"url"`
		Control string `json:"control"`
	}
	for tries := 3; ; tries-- {
		g.process, err = g.lab.Run("gateway.cjs", &ready, within, string(arguments))
		switch {
		case err == nil:
		// another process has taken the free port
		case g.options.Port == 0 && tries > 1 && strings.Contains(err.Error(), "EADDRINUSE"):
			continue
		default:
			return err
		}
		break
	}
	g.URL, g.control = ready.URL, ready.Control
	if u, err := url.Parse(g.URL); err == nil {
		g.options.Port, _ = strconv.Atoi(u.Port())
	}
	return nil
}

func (g *Gateway) stop() {
	http.DefaultClient.CloseIdleConnections()
	g.process.Kill()
	_ = os.RemoveAll(g.dir)
}

// Kill ends the gateway like kill -9. The locks keep their codes.
func (g *Gateway) Kill() { g.process.Kill() }

// Pause suspends the gateway with open connections until Resume, as on a hanging machine.
func (g *Gateway) Pause(t testing.TB) { t.Helper(); g.signal(t, syscall.SIGSTOP) }

// Paused reports whether the gateway is suspended.
func (g *Gateway) Paused(t testing.TB) bool {
	t.Helper()
	paused, err := g.process.Paused()
	if err != nil {
		t.Fatal(err)
	}
	return paused
}

// Resume resumes the gateway.
func (g *Gateway) Resume(t testing.TB) { t.Helper(); g.signal(t, syscall.SIGCONT) }

func (g *Gateway) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := g.process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Ended waits until the gateway has ended without being killed.
func (g *Gateway) Ended() { g.process.Wait() }

// Restart starts the gateway again at the same address.
func (g *Gateway) Restart(t testing.TB) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(g.dir, "locks")); err != nil { // lock files of the killed process
		t.Fatal(err)
	}
	if err := g.run(startTimeout); err != nil {
		t.Fatalf("restart the Z-Wave lab: %v", err)
	}
}

// Lease returns a lock in factory state for this test only.
func (g *Gateway) Lease(t testing.TB, profile Profile) *Lock {
	t.Helper()
	if g.free[profile] == nil {
		t.Fatalf("the gateway has no lock of profile %s", profile)
	}
	l := <-g.free[profile]
	t.Cleanup(func() { g.free[profile] <- l })
	l.do(t, "reset", nil, nil)
	return l
}

// do calls the gateway's control port.
func (g *Gateway) do(ctx context.Context, lock int, what string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(
		ctx,
		http.MethodPost,
		fmt.Sprintf("%s/%d/%s", g.control, lock, what),
		bytes.NewReader(body),
	)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %s", err, g.process.Stderr())
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %s", what, resp.Status, data)
	case out == nil:
		return nil
	}
	return json.Unmarshal(data, out)
}

// Locks returns all locks of the gateway in their current state.
func (g *Gateway) Locks() []*Lock {
	var locks []*Lock
	for _, l := range g.options.Locks {
		locks = append(locks, &Lock{gateway: g, ID: l.ID, Profile: l.Profile})
	}
	return locks
}
