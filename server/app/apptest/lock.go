package apptest

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// Lock is a simulated lock in the hands of a test. Its methods talk to the simulated cloud directly, so the server does
// not know about their changes.
type Lock struct {
	s     *Server
	url   string
	token string
}

// CodeOnLock is a code in the memory of a lock.
type CodeOnLock struct {
	// ID is the lock's id of the code.
	ID string `json:"access_code_id"`
	// PIN is the digits of the code.
	PIN string `json:"code"`
	// Name is the name of the code on the lock.
	Name string `json:"name"`
}

// Lock returns the simulated lock of a device.
func (s *Server) Lock(t testing.TB, device string) *Lock {
	t.Helper()
	d, err := s.App.Access.Devices.GetDevice(t.Context(), s.principal(), device, "")
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := s.App.Access.Accounts.ListAccounts(t.Context(), account.SandboxAdapter)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range accounts {
		if a.ID != d.AccountID {
			continue
		}
		return &Lock{s: s, url: s.cloud + "/sandbox/cloud/sandbox/locks/" + d.Ref, token: s.cloudToken(t, a)}
	}
	t.Fatalf("device %s has no simulated account", device)
	return nil
}

// cloudToken returns the token of a simulated account. The token of an account in another process is derived as there.
func (s *Server) cloudToken(t testing.TB, a account.Account) string {
	t.Helper()
	if s.App.Sandbox != nil {
		token, err := s.App.Sandbox.Token(s.t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	seed, err := s.App.Access.ServerKeys.ServerKey(t.Context(), keyrotation.SandboxSeed)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(a.Config, &config); err != nil {
		t.Fatal(err)
	}
	return sandbox.Tokens(binary.BigEndian.Uint64(seed)).Account(config.Key)
}

// Memory reads the memory of the lock.
func (l *Lock) Memory(t testing.TB) []CodeOnLock {
	t.Helper()
	var out struct {
		Codes []CodeOnLock `json:"access_codes"`
	}
	if status := l.s.send(t, http.MethodGet, l.url+"/memory", l.token, nil, &out); status != http.StatusOK {
		t.Fatalf("read the lock's memory: %d", status)
	}
	return out.Codes
}

// MemoryJSON reads the whole memory of the device.
func (l *Lock) MemoryJSON(t testing.TB) (out json.RawMessage) {
	t.Helper()
	if status := l.s.send(t, http.MethodGet, l.url+"/memory", l.token, nil, &out); status != http.StatusOK {
		t.Fatalf("read the device's memory: %d", status)
	}
	return out
}

// Has reports whether a PIN is on the lock.
func (l *Lock) Has(t testing.TB, pin string) bool {
	t.Helper()
	for _, c := range l.Memory(t) {
		if c.PIN == pin {
			return true
		}
	}
	return false
}

// Account calls a control of the lock's vendor account: "revoke" or "restore" its credentials.
func (l *Lock) Account(t testing.TB, what string) {
	t.Helper()
	if status := l.s.send(
		t,
		http.MethodPost,
		l.s.cloud+"/sandbox/cloud/sandbox/account/"+what,
		l.token,
		nil,
		nil,
	); status >= 300 {
		t.Fatalf("%s the account: %d", what, status)
	}
}

// Control calls a control of the lock. The path is relative to the lock's controls in the simulated cloud, see package
// sandbox.
func (l *Lock) Control(t testing.TB, method, path string, body any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if status := l.s.send(t, method, l.url+path, l.token, raw, nil); status >= 300 {
		t.Fatalf("%s %s: %d", method, path, status)
	}
}

// Enter types a PIN at the lock's keypad and decodes the result into out.
func (l *Lock) Enter(t testing.TB, pin string, out any) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"code": pin})
	if err != nil {
		t.Fatal(err)
	}
	if status := l.s.send(t, http.MethodPost, l.url+"/keypad/enter", l.token, raw, out); status >= 300 {
		t.Fatalf("enter a PIN: %d", status)
	}
}
