package provider

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A PIN that moves between two addresses is on the lock while the new code is created.

// leaves lets a code leave its lock at the third read of it.
func (f *fake) leaves(id string, leave func(*fakeCode)) {
	var seen atomic.Int32
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/access_codes/get" && seen.Add(1) == 3 {
			f.do(func() { leave(f.codes[id]) })
		}
		f.ServeHTTP(w, r)
	})
	f.front.Store(&front)
}

func TestCreation_WaitsForPINToLeaveLock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		silent bool
		leave  func(f *fake, id string) func(*fakeCode)
	}{
		"deleted": {false, func(f *fake, id string) func(*fakeCode) {
			return func(*fakeCode) { delete(f.codes, id) }
		}},
		"being deleted": {false, func(*fake, string) func(*fakeCode) {
			return func(c *fakeCode) { c.status = "removing" }
		}},
		"deleted, on a server that names no code": {true, func(f *fake, id string) func(*fakeCode) {
			return func(*fakeCode) { delete(f.codes, id) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			f.uniquePINs, f.namesNoHolder = true, c.silent
			id := f.unmanaged(fakeCode{name: "Nanny", code: longPIN, managed: true})
			f.leaves(id, c.leave(f, id))
			w := newDirectory(t, map[string]string{"main.tf": required + f.config(accessCode(`code = "`+longPIN+`"`))})
			w.expect(true, "apply", "-auto-approve")
			f.expectWrites(t, "in the end", "/access_codes/create", "/access_codes/create")
		})
	}
}

// boundDuplicates shortens the wait for a PIN whose holder stays. Tests that call it must not be parallel.
func boundDuplicates(t *testing.T) {
	t.Helper()
	before := duplicateTimeout
	duplicateTimeout = 100 * time.Millisecond
	t.Cleanup(func() { duplicateTimeout = before })
}

func TestCreation_TrueConflictSaysWhatToDo(t *testing.T) {
	boundDuplicates(t)
	for name, c := range map[string]struct {
		managed bool
		says    string
		not     string
	}{
		"with a managed code":    {true, "keep it with a moved block: moved {", "import it"},
		"with an unmanaged code": {false, "import it as `<device_id>/<access_code_id>`", "moved {"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			f.uniquePINs = true
			f.unmanaged(fakeCode{name: "Nanny", code: longPIN, managed: c.managed})
			w := newDirectory(t, map[string]string{"main.tf": required + f.config(accessCode(`code = "`+longPIN+`"`))})
			w.expect(false, "apply", "-auto-approve")
			said := plainly(w.seen.String())
			expectSaid(t, name, said, "The device already has this code", c.says)
			if strings.Contains(said, c.not) || strings.Contains(said, longPIN) {
				t.Errorf("too much is said:\n%s", said)
			}
			if looks := f.count("/access_codes/get"); looks > 0 && !c.managed {
				t.Errorf("the unmanaged code was read %d times", looks)
			}
			f.expectWrites(t, "in the end", "/access_codes/create")
		})
	}
}

func TestTerraformMovesPINBetweenAddresses(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.uniquePINs = true
	config := func(name string) string {
		return required + f.config(strings.Replace(accessCode(`code = "`+longPIN+`"`), "front", name, 1))
	}
	w := newWorkspace(t, map[string]string{"main.tf": config("former")})
	w.expect(true, "apply", "-auto-approve")
	w.write("main.tf", config("latter"))
	w.expect(true, "apply", "-auto-approve")
	w.expect(true, "plan", "-detailed-exitcode")
	if len(f.codes) != 1 {
		t.Errorf("%d codes are on the lock", len(f.codes))
	}
}
