package apptest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// Lock is a simulated lock as somebody who stands before it has it in hand. What is done through it goes to
// the simulated cloud, behind the server's back.
type Lock struct {
	s     *Server
	url   string
	token string
}

// CodeOnLock is a code in a lock's own memory.
type CodeOnLock struct {
	ID   string `json:"access_code_id"` // the lock's own
	PIN  string `json:"code"`
	Name string `json:"name"`
}

// Lock is the simulated lock behind a device.
func (s *Server) Lock(t testing.TB, device string) *Lock {
	t.Helper()
	d, err := s.App.Access.GetDevice(t.Context(), s.principal(), device, "")
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := s.App.Access.ListAccounts(t.Context(), access.SandboxAdapter)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range accounts {
		if a.ID != d.AccountID {
			continue
		}
		token, err := s.App.Sandbox.Token(s.t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return &Lock{s: s, url: s.cloud + "/sandbox/cloud/sandbox/locks/" + d.Ref, token: token}
	}
	t.Fatalf("device %s has no simulated account", device)
	return nil
}

// Memory reads what is really on the lock.
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

// Has says whether the lock opens for a PIN.
func (l *Lock) Has(t testing.TB, pin string) bool {
	t.Helper()
	for _, c := range l.Memory(t) {
		if c.PIN == pin {
			return true
		}
	}
	return false
}

// Account turns a knob of the lock's vendor account: "revoke" or "restore" its credentials.
func (l *Lock) Account(t testing.TB, what string) {
	t.Helper()
	if status := l.s.send(t, http.MethodPost, l.s.cloud+"/sandbox/cloud/sandbox/account/"+what, l.token, nil, nil); status >= 300 {
		t.Fatalf("%s the account: %d", what, status)
	}
}

// Control turns a knob of the lock: method and path below its own of the simulated cloud's controls, which
// package sandbox describes.
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

// Enter types a PIN in at the lock's keypad, and reads what came of it into out.
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
