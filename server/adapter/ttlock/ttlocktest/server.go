// Package ttlocktest is a stateful fake of the TTLock Open Platform for tests, with the bad habits of the vendor as
// switches. The description contract.yaml judges each request and each response. The package must not know the adapter.
package ttlocktest

import (
	"crypto/md5" //nolint:gosec // as the vendor
	_ "embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/contracttest"
)

//go:embed contract.yaml
var contract []byte

// Credentials of the account and of the operator's application.
const (
	Username     = "owner@example.com"
	Password     = "correct horse battery"
	ClientID     = "fake-client-id"
	ClientSecret = "fake-client-secret-5f1c"
	UserID       = 2340
	// SuperPasscode opens each lock and is in its detail.
	SuperPasscode = "7780189"
)

// Kind is how the cloud reaches a lock.
type Kind int

// Kinds of locks.
const (
	// Gateway locks are behind a gateway.
	Gateway Kind = iota
	// WiFi locks connect themselves.
	WiFi
	// SavingWiFi locks fetch their commands later.
	SavingWiFi
	// NBIoT locks fetch their commands later, and the list of codes shows the progress.
	NBIoT
)

// features are the feature values: passcodes, auto-lock, lock command, remote unlock, and the kind's bit.
var features = map[Kind]string{
	Gateway:    "591",
	WiFi:       "100000000000591",
	SavingWiFi: "100000000000591",
	NBIoT:      "10591",
}

// Lock describes a lock to start with.
type Lock struct {
	Kind Kind
	// Name defaults to "Front door".
	Name string
	// Features replaces the feature value of the kind.
	Features string
	// Gateway is the number of the lock's gateway, from 0.
	Gateway int
}

// Options configure Start.
type Options struct {
	// Locks defaults to one behind a gateway.
	Locks []Lock
	// RotateRefresh issues another refresh token with each refresh, and refuses the old one.
	RotateRefresh bool
	// NeverUsed refuses to change a code that was never entered (errcode -3008).
	NeverUsed bool
	// KeepsFrame ignores a change from a time frame to none.
	KeepsFrame bool
	// Lag is the number of reads after a write for which the list of codes stays old.
	Lag int
	// DuplicatePushes sends each push twice.
	DuplicatePushes bool
}

// Server is a cloud with one account. It closes with the test.
type Server struct {
	*httptest.Server
	t    testing.TB
	opts Options

	mu       sync.Mutex
	locks    map[int64]*lock
	order    []int64
	gateways []*gateway
	lastID   int64
	access   map[string]bool // tokens; false: expired
	refresh  map[string]bool
	logins   int
	calls    map[string]int
	pushURL  string
	pushes   sync.WaitGroup
	clock    time.Duration
	errcode  int // of all calls
	calling  int // errcode of the next calls
	callsOff int
	drop     bool
	fail     bool
	cut      bool
	lose     bool
	held     chan struct{} // closed: commands continue
	arrived  chan struct{}
	stall    chan struct{} // not nil: calls get no response until it closes
}

type gateway struct {
	id     int64
	online bool
	busy   bool // a command is running
	refuse int  // commands to refuse as busy
}

type lock struct {
	Lock
	id       int64
	gateway  *gateway
	online   bool
	removed  bool
	unlocked bool
	autoLock int
	codes    []*code // of the cloud
	memory   []*code // of the lock
	old      []*code // what the list shows for the next reads
	lag      int
	records  []record
}

// Code is a passcode.
type Code struct {
	ID         int64
	PIN        string
	Name       string
	Start, End time.Time // zero: permanent
}

type code struct {
	Code
	typ    int
	random bool
	status int
	used   bool
	next   *code // what the lock will have after the next reads; nil: it is deleted
	reads  int   // until then
}

type record struct {
	ID      int64  `json:"recordId,omitempty"`
	Lock    int64  `json:"lockId,omitempty"`
	Type    int    `json:"recordType"`
	Success int    `json:"success"`
	Name    string `json:"username,omitempty"`
	PIN     string `json:"keyboardPwd,omitempty"`
	At      int64  `json:"lockDate"`
}

// Start starts a cloud.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{
		t:       t,
		opts:    o,
		locks:   map[int64]*lock{},
		access:  map[string]bool{},
		refresh: map[string]bool{},
		calls:   map[string]int{},
		lastID:  163376,
	}
	if len(o.Locks) == 0 {
		s.opts.Locks = []Lock{{}}
	}
	for _, l := range s.opts.Locks {
		s.addLock(l)
	}
	s.Server = httptest.NewServer(s.disturbed(contracttest.Open(t, contract).Handler(t, s.routes())))
	t.Cleanup(func() {
		s.Unstall()
		s.pushes.Wait()
		s.Close()
	})
	return s
}

func (s *Server) addLock(l Lock) {
	if l.Name == "" {
		l.Name = "Front door"
	}
	if l.Features == "" {
		l.Features = features[l.Kind]
	}
	one := &lock{Lock: l, id: s.nextID(), online: true}
	if l.Kind == Gateway {
		for len(s.gateways) <= l.Gateway {
			s.gateways = append(s.gateways, &gateway{id: s.nextID(), online: true})
		}
		one.gateway = s.gateways[l.Gateway]
	}
	s.locks[one.id] = one
	s.order = append(s.order, one.id)
}

func (s *Server) nextID() int64 {
	s.lastID++
	return s.lastID
}

// ID returns the lockId of the n-th lock, from 0.
func (s *Server) ID(n int) string { return strconv.FormatInt(s.order[n], 10) }

// disturbed applies the switches that concern whole responses.
func (s *Server) disturbed(judged http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		stalled, cut, lose := s.stall, false, false
		if r.Method == http.MethodPost && isWrite(r.URL.Path) {
			cut, s.cut = s.cut, false
			lose, s.lose = s.lose, false
		}
		s.calls[r.URL.Path]++
		s.mu.Unlock()
		switch {
		case stalled != nil:
			select {
			case <-stalled:
			case <-r.Context().Done():
			}
			panic(http.ErrAbortHandler)
		case lose:
			panic(http.ErrAbortHandler)
		case cut:
			judged.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		judged.ServeHTTP(w, r)
	})
}

func isWrite(path string) bool { return path != "/oauth2/token" && path != "/v3/wifiLock/detail" }

// Calls returns the number of calls of a path since the start.
func (s *Server) Calls(path string) int { return locked(s, func() int { return s.calls[path] }) }

func locked[T any](s *Server, do func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return do()
}

func (s *Server) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// Bad habits of the cloud as a whole.

// Expire ends all access tokens. Refresh tokens still work.
func (s *Server) Expire() {
	s.change(func() {
		for token := range s.access {
			s.access[token] = false
		}
	})
}

// Revoke ends all tokens.
func (s *Server) Revoke() {
	s.Expire()
	s.change(func() { clear(s.refresh) })
}

// SetClock moves the clock of the cloud away from the test's.
func (s *Server) SetClock(ahead time.Duration) { s.change(func() { s.clock = ahead }) }

// RefuseAll makes all calls fail with an errcode; 0 ends that.
func (s *Server) RefuseAll(errcode int) { s.change(func() { s.errcode = errcode }) }

// RefuseCalls makes the next calls fail with an errcode, such as 30006 or 30007.
func (s *Server) RefuseCalls(errcode, calls int) {
	s.change(func() { s.calling, s.callsOff = errcode, calls })
}

// DropNext accepts the next write without effect.
func (s *Server) DropNext() { s.change(func() { s.drop = true }) }

// FailNext accepts the next write of a code, which the lock then does not take. Only locks that fetch their commands
// later behave like this.
func (s *Server) FailNext() { s.change(func() { s.fail = true }) }

// CutNext executes the next write and loses its response.
func (s *Server) CutNext() { s.change(func() { s.cut = true }) }

// LoseNext loses the next write before it arrives.
func (s *Server) LoseNext() { s.change(func() { s.lose = true }) }

// Heal ends FailNext, CutNext, LoseNext, and RefuseAll.
func (s *Server) Heal() {
	s.change(func() { s.fail, s.cut, s.lose, s.errcode = false, false, false, 0 })
}

// Stall leaves calls unanswered until Unstall.
func (s *Server) Stall() {
	s.change(func() {
		if s.stall == nil {
			s.stall = make(chan struct{})
		}
	})
}

// Unstall ends Stall.
func (s *Server) Unstall() {
	s.change(func() {
		if s.stall != nil {
			close(s.stall)
			s.stall = nil
		}
	})
}

// HoldCommand makes the next command to a lock wait. arrived is closed when it has come, and release continues it.
func (s *Server) HoldCommand() (arrived <-chan struct{}, release func()) {
	held, came := make(chan struct{}), make(chan struct{})
	s.change(func() { s.held, s.arrived = held, came })
	return came, sync.OnceFunc(func() { close(held) })
}

// Busy makes the gateway of a lock refuse the next commands.
func (s *Server) Busy(n, commands int) { s.change(func() { s.nth(n).gateway.refuse = commands }) }

// What happens at a lock. n is its number, from 0.

func (s *Server) nth(n int) *lock { return s.locks[s.order[n]] }

// SetOnline disconnects the lock, or its gateway, from the network, or reconnects it.
func (s *Server) SetOnline(n int, online bool) {
	s.mu.Lock()
	l := s.nth(n)
	if l.gateway != nil {
		l.gateway.online = online
	} else {
		l.online = online
	}
	s.mu.Unlock()
	if l.gateway != nil {
		id := strconv.FormatInt(l.gateway.id, 10)
		s.push(map[string]string{"notifyType": "2", "gatewayId": id, "isOnline": bit(online)})
		return
	}
	s.push(map[string]string{
		"notifyType": "3", "lockId": s.ID(n), "lockAlias": l.Name, "lockMac": mac(l.id), "networkName": "home",
		"admin": Username, "isOnline": bit(online),
	})
}

func bit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// Remove deletes the lock from the account. Records that it has uploaded before are pushed afterwards.
func (s *Server) Remove(n int) {
	s.change(func() { s.nth(n).removed = true })
	s.pushRecord(n, record{Type: 45, Success: 1})
}

// Codes returns the codes in the memory of the lock.
func (s *Server) Codes(n int) []Code {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Code
	for _, c := range s.nth(n).memory {
		out = append(out, c.Code)
	}
	return out
}

// CodeID returns the identifier of the code with a name, empty if there is none.
func (s *Server) CodeID(n int, name string) (id string) {
	for _, c := range s.Codes(n) {
		if c.Name == name {
			id = strconv.FormatInt(c.ID, 10)
		}
	}
	return id
}

// AddCode adds a permanent code with the app. The cloud knows it at once and pushes nothing.
func (s *Server) AddCode(n int, name, pin string) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.nth(n)
	c := &code{Code: Code{ID: s.nextID(), PIN: pin, Name: name}, typ: 2, status: 1}
	l.codes, l.memory = append(l.codes, c), append(l.memory, c)
	return strconv.FormatInt(c.ID, 10)
}

// ChangeCode changes the PIN of a code with the app.
func (s *Server) ChangeCode(n int, id, pin string) {
	s.change(func() {
		for _, c := range s.nth(n).codes {
			if strconv.FormatInt(c.ID, 10) == id {
				c.PIN = pin
			}
		}
	})
}

// DeleteCode deletes a code with the app.
func (s *Server) DeleteCode(n int, id string) {
	s.change(func() {
		l := s.nth(n)
		is := func(c *code) bool { return strconv.FormatInt(c.ID, 10) == id }
		l.codes, l.memory = slices.DeleteFunc(slices.Clone(l.codes), is), slices.DeleteFunc(slices.Clone(l.memory), is)
	})
}

// Fill fills the lock with codes.
func (s *Server) Fill(n int) {
	for pin := 100000000; len(s.Codes(n)) < capacity; pin++ {
		s.AddCode(n, "Filler", strconv.Itoa(pin))
	}
}

// EnterPIN enters a PIN at the keypad and reports whether the door opened. The cloud pushes the PIN in clear.
func (s *Server) EnterPIN(n int, pin string) bool {
	s.mu.Lock()
	l, now := s.nth(n), time.Now()
	r := record{Type: 4, PIN: pin}
	for _, c := range l.memory {
		if c.PIN == pin && (c.Start.IsZero() || !now.Before(c.Start) && now.Before(c.End)) {
			c.used, l.unlocked = true, true
			r.Success, r.Name = 1, c.Name
		}
	}
	s.mu.Unlock()
	s.pushRecord(n, r)
	return r.Success == 1
}

// LockByHand locks the door with its button.
func (s *Server) LockByHand(n int) {
	s.change(func() { s.nth(n).unlocked = false })
	s.pushRecord(n, record{Type: 47, Success: 1})
}

func mac(id int64) string {
	return fmt.Sprintf("C5:40:E0:%02X:%02X:%02X", id>>16&255, id>>8&255, id&255)
}

// PasswordMD5 is what the cloud receives as the password.
func PasswordMD5() string {
	sum := md5.Sum([]byte(Password)) //nolint:gosec // as the vendor
	return hex.EncodeToString(sum[:])
}

// Secrets are what no output may contain, with their kinds.
func Secrets() map[string]string {
	return map[string]string{
		ClientSecret:           "client secret",
		Password:               "password",
		PasswordMD5():          "password",
		SuperPasscode:          "super passcode",
		"fake-access-token-1":  "access token",
		"fake-refresh-token-1": "refresh token",
	}
}
