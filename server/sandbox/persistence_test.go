package sandbox_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

func TestALockKeepsItsMemoryAcrossARestart(t *testing.T) {
	t.Parallel()
	o := sandbox.Options{Seed: 7, Dir: t.TempDir()}
	b := open(t, o, "august", "nuki")
	body := object{"name": "Guest", "code": "4821", "custom_id": "k1"}
	id := b.put(t, body)
	b.ok(t, http.MethodPost, b.controlPath("battery"), object{"battery_level": 33})
	b.ok(t, http.MethodPost, "/sandbox/locks/"+b.account.Locks[1].ID+"/remove", object{})
	e := b.subscribe(t)
	before := b.ok(t, http.MethodGet, b.controlPath("memory"), nil)
	b.server.Close()
	b.Close()

	again := open(t, o, "august", "nuki")
	if again.account.Token != b.account.Token {
		t.Error("the token has changed")
	}
	after := again.ok(t, http.MethodGet, again.controlPath("memory"), nil)
	if text(t, before) != text(t, after) {
		t.Errorf("the lock had %s\nand has %s", text(t, before), text(t, after))
	}
	if locks := objects(again.ok(t, http.MethodGet, "/locks", nil)["locks"]); len(locks) != 1 {
		t.Errorf("the removed lock is back: %v", locks)
	}
	if _, answer := again.call(t, http.MethodPost, again.codesPath(), body); answer["access_code_id"] != id {
		t.Errorf("custom_id is lost: %v", answer)
	}
	again.ok(t, http.MethodPost, again.controlPath("offline"), object{})
	e.next(t, "device.offline")
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestACodeIsInTheFileBeforeItIsAnnounced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, sandbox.Options{Seed: 7, Dir: dir}, "august")
	e := b.subscribe(t)
	b.ok(t, http.MethodPost, b.codesPath(), object{"name": "Guest", "code": "4821"})
	id := e.next(t, "access_code.created")["access_code_id"]
	data, err := os.ReadFile(filepath.Join(dir, "locks", b.lock()+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file object
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if with(objects(file["access_codes"]), "access_code_id", id) == nil {
		t.Errorf("the file is %s", data)
	}
}

func TestLockReportsStorageError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, sandbox.Options{Seed: 7, Dir: dir}, "august")
	if err := os.RemoveAll(filepath.Join(dir, "locks")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "locks"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := len(b.memory(t))
	b.refuses(t, "DEVICE_ERROR", http.MethodPost, b.controlPath("keypad/codes"),
		object{"name": "Guest", "code": "4821"})
	if got := len(b.memory(t)); got != before {
		t.Errorf("got %d codes, want %d", got, before)
	}
}

func TestADamagedFileIsNotOverwritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := sandbox.Options{Seed: 7, Dir: dir}
	b := open(t, o, "august")
	b.Close()
	path := filepath.Join(dir, "locks", b.lock()+".json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sandbox.New(o)
	t.Cleanup(s.Close)
	if _, err := s.EnsureAccount(sandbox.AccountSpec{Key: "test", Profiles: []string{"august"}}); err == nil {
		t.Error("the damaged file was accepted")
	}
	if data, _ := os.ReadFile(path); string(data) != "{" {
		t.Error("the file was changed")
	}
}

func TestASeedDecidesEverything(t *testing.T) {
	t.Parallel()
	look := func(seed uint64) string {
		b := open(t, sandbox.Options{Seed: seed})
		var all []object
		for _, l := range b.account.Locks {
			all = append(all, b.ok(t, http.MethodGet, "/sandbox/locks/"+l.ID+"/memory", nil))
		}
		return b.account.Token + text(t, all)
	}
	if first, again := look(7), look(7); first != again {
		t.Error("the same seed gives different accounts")
	}
	if look(7) == look(8) {
		t.Error("different seeds give the same account")
	}
}

func TestEnsureAccountAddsWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := open(t, sandbox.Options{Seed: 7}, "august")
	grown, err := b.EnsureAccount(sandbox.AccountSpec{
		Key: "test", Profiles: []string{"august", "schlage"},
		LocksPerProfile: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(grown.Locks) != 4 || grown.Locks[0] != b.account.Locks[0] || grown.Token != b.account.Token {
		t.Errorf("the account is now %+v", grown)
	}
	if _, err := b.EnsureAccount(sandbox.AccountSpec{Key: "test", Profiles: []string{"none"}}); err == nil {
		t.Error("an unknown profile was accepted")
	}
	b.Close()
	if _, err := b.EnsureAccount(sandbox.AccountSpec{Key: "test"}); err == nil {
		t.Error("a closed sandbox created an account")
	}
}
