package main

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zwave"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// home is a server with a connected Z-Wave gateway.
type home struct {
	*program
	gateway *zwave.Gateway
	server  ready
	process *exec.Cmd
	key     string
	account string
}

func newHome(t *testing.T, profiles ...zwave.Profile) *home {
	t.Helper()
	h := &home{program: newProgram(t), gateway: zwave.Start(t, profiles...)}
	h.server, h.process = h.serve()
	h.key = h.ok("keys", "create", "--workspace", h.ok("workspaces", "create", "Home"))
	h.account = h.ok("accounts", "connect", "zwavejs", "--url", h.gateway.URL)
	return h
}

// within is until, and logs events and accounts when it fails.
func (h *home) within(what string, ok func() bool) {
	h.Helper()
	testenv.UntilOr(h, what, ok, func() { h.Logf("events: %v; accounts:\n%s", h.events(), h.ok("accounts", "list")) })
}

// locks returns the device ids of the gateway's locks in the order of the list.
func (h *home) locks() (ids []string) {
	h.Helper()
	var out struct {
		Devices []struct {
			ID      string `json:"device_id"`
			Type    string `json:"device_type"`
			Account string `json:"connected_account_id"`
		} `json:"devices"`
	}
	h.post(h.server, h.key, "/devices/list", "{}", &out)
	for _, d := range out.Devices {
		if d.Type != "zwave_lock" || d.Account != h.account {
			h.Fatalf("a device is shown as %+v", d)
		}
		ids = append(ids, d.ID)
	}
	return ids
}

type shownCode struct {
	ID     string `json:"access_code_id"`
	Status string `json:"status"`
	Errors []struct {
		Code string `json:"error_code"`
	} `json:"errors"`
}

func (h *home) code(id string) shownCode {
	h.Helper()
	var out struct {
		Code shownCode `json:"access_code"`
	}
	h.post(h.server, h.key, "/access_codes/get", fmt.Sprintf(`{"access_code_id":%q}`, id), &out)
	return out.Code
}

// put creates a code and waits until it is set.
func (h *home) put(device, pin string) (id string) {
	h.Helper()
	var out struct {
		Code shownCode `json:"access_code"`
	}
	if status := h.post(
		h.server,
		h.key,
		"/access_codes/create",
		fmt.Sprintf(`{"device_id":%q,"code":%q}`, device, pin),
		&out,
	); status != http.StatusOK {
		h.Fatalf("create a code: %d", status)
	}
	h.within("the code is set", func() bool { return h.code(out.Code.ID).Status == "set" })
	return out.Code.ID
}

func (h *home) events() map[string]int {
	h.Helper()
	var out struct {
		Events []struct {
			Type string `json:"event_type"`
		} `json:"events"`
	}
	h.post(h.server, h.key, "/events/list", `{"since":"2020-01-01T00:00:00Z","limit":500}`, &out)
	told := map[string]int{}
	for _, e := range out.Events {
		told[e.Type]++
	}
	return told
}

// pins returns the PINs on a lock, sorted.
func pins(t *testing.T, l *zwave.Lock) (out []string) {
	t.Helper()
	for _, c := range l.State(t).Codes {
		out = append(out, c.PIN)
	}
	slices.Sort(out)
	return out
}

// proxy starts a proxy in front of a gateway that requires a password.
func proxy(t *testing.T, gateway string, password *atomic.Value) (address string) {
	t.Helper()
	to, err := url.Parse(strings.Replace(gateway, "ws", "http", 1))
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(given), []byte(password.Load().(string))) != 1 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http", "ws", 1)
}

// A Z-Wave gateway can be connected, moved to another address, and disconnected.
func TestZWave_Lifecycle(t *testing.T) {
	t.Parallel()
	h := newHome(t, zwave.Plain, zwave.Masked)
	lock := h.gateway.Lease(t, zwave.Plain)
	h.within("the locks appear", func() bool { return len(h.locks()) == 2 })
	h.within("the list counts them", func() bool {
		list := h.ok("accounts", "list")
		line := list[strings.LastIndex(list, "\n")+1:]
		return strings.HasPrefix(line, h.account) && strings.Contains(line, "  2  ") &&
			strings.HasSuffix(line, "connected  -")
	})
	devices := h.locks()
	lock.Program(t, 3, "97531086")
	h.within("a code at the keypad of one of them appears", func() bool {
		var out struct {
			Codes []any `json:"access_codes"`
		}
		h.post(h.server, h.key, "/access_codes/unmanaged/list", fmt.Sprintf(`{"device_id":%q}`, devices[0]), &out)
		return len(out.Codes) == 1
	})
	h.put(devices[0], "86420975")

	var password atomic.Value
	password.Store("first word")
	address := proxy(t, h.gateway.URL, &password)
	update := []string{"accounts", "update", "--url", address, "--username", "me", "--password-file"}
	if _, err := h.run(
		append(update, h.file("wrong", "nonsense"), h.account)...); err == nil ||
		!strings.Contains(err.Error(), "another user or password") {
		t.Errorf("a wrong password: %v", err)
	}
	h.ok(append(update, h.file("right", "first word\n"), h.account)...)
	if list := h.ok(
		"accounts",
		"list",
	); !strings.Contains(list, strings.TrimPrefix(address, "ws://")) ||
		strings.Contains(list, "first word") {
		t.Errorf("the list has not the new address, or has the password")
	}
	second := h.put(devices[0], "75319864")
	if got := h.locks(); !slices.Equal(got, devices) {
		t.Errorf("reached otherwise they are %v, were %v", got, devices)
	}
	h.gateway.Kill() // its proxy has another password when it returns
	password.Store("second word")
	h.gateway.Restart(t)
	h.within(
		"the old password is refused",
		func() bool { return strings.Contains(h.ok("accounts", "list"), "another user or password") },
	)
	h.ok("accounts", "update", "--password-file", h.file("new", "second word"), h.account)
	h.within(
		"the new one is accepted",
		func() bool { return strings.HasSuffix(h.ok("accounts", "list"), "connected  -") },
	)
	h.put(devices[0], "64208753")
	if got := h.code(second); got.Status != "set" || len(got.Errors) > 0 {
		t.Errorf("an earlier code is %+v", got)
	}

	h.ok("accounts", "disconnect", "--yes", h.account)
	h.within("the disconnect is an event", func() bool {
		told := h.events()
		return told["connected_account.deleted"] == 1 && told["device.removed"] == 2 && len(h.locks()) == 0
	})
	if list := h.ok("accounts", "list"); strings.Contains(list, h.account) {
		t.Errorf("it is still listed:\n%s", list)
	}
	if got := pins(t, lock); len(got) != 4 {
		t.Errorf("%d codes are on the lock, 4 were", len(got))
	}
}

// A new lock with the node id of an excluded one is another device and gets none of its codes.
func TestZWave_ReplacedLockIsNewDevice(t *testing.T) {
	t.Parallel()
	h := newHome(t, zwave.Plain)
	lock := h.gateway.Lease(t, zwave.Plain)
	h.within("the lock appears", func() bool { return len(h.locks()) == 1 })
	for removed, exclude := range []func(){
		func() { lock.Remove(t); lock.Include(t) },
		func() { // the server missed the exclusion, and the serial number differs
			if err := h.process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = h.process.Wait()
			lock.Remove(t)
			lock.Include(t)
			h.server, h.process = h.serve()
		},
		func() { // the server missed the exclusion, and the lock is absent
			if err := h.process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = h.process.Wait()
			lock.Remove(t)
			h.server, h.process = h.serve()
			h.within("the device is removed", func() bool { return len(h.locks()) == 0 })
			lock.Include(t)
		},
	} {
		old := h.locks()[0]
		code := h.put(old, "86420975")
		exclude()
		h.within("another device appears", func() bool { ids := h.locks(); return len(ids) == 1 && ids[0] != old })
		h.within("the old code says why it is of no use", func() bool {
			got := h.code(code)
			return len(got.Errors) == 1 && got.Errors[0].Code == "device_removed" && got.Status == "unknown"
		})
		if told := h.events(); told["device.removed"] != removed+1 || told["device.added"] != removed+2 {
			t.Errorf("events: %v", told)
		}
		h.put(h.locks()[0], "75319864") // earlier pending writes are done by now
		if got := pins(t, lock); !slices.Equal(got, []string{"75319864"}) {
			t.Fatalf("%d codes are on the new lock", len(got))
		}
	}
}

// A gateway that hangs with an open connection is detected. Nothing is lost or duplicated when it continues.
func TestZWave_HangingGateway(t *testing.T) {
	t.Parallel()
	h := newHome(t, zwave.Plain, zwave.Masked)
	lock, masked := h.gateway.Lease(t, zwave.Plain), h.gateway.Lease(t, zwave.Masked)
	h.within("the locks appear", func() bool { return len(h.locks()) == 2 })
	devices := h.locks()
	h.put(devices[0], "86420975")
	h.put(devices[1], "86420975")
	h.gateway.Pause(t)
	var codes []string
	for _, d := range devices {
		var out struct {
			Code shownCode `json:"access_code"`
		}
		h.post(h.server, h.key, "/access_codes/create", fmt.Sprintf(`{"device_id":%q,"code":"75319864"}`, d), &out)
		codes = append(codes, out.Code.ID)
	}
	h.within("the outage is an event, and the list shows the reason", func() bool {
		return h.events()["connected_account.disconnected"] == 1 &&
			strings.Contains(h.ok("accounts", "list"), "the gateway ")
	})
	for _, code := range codes {
		if got := h.code(code); got.Status != "setting" {
			t.Errorf("a code that cannot be set yet is %s", got.Status)
		}
	}
	h.gateway.Resume(t)
	h.within("its return is an event", func() bool { return h.events()["connected_account.connected"] == 2 })
	h.within(
		"the codes are set",
		func() bool { return h.code(codes[0]).Status == "set" && h.code(codes[1]).Status == "set" },
	)
	for _, l := range []*zwave.Lock{lock, masked} {
		if got := pins(t, l); !slices.Equal(got, []string{"75319864", "86420975"}) {
			t.Errorf("on the %s lock are %d codes", l.Profile, len(got))
		}
	}
	if list := h.ok("accounts", "list"); !strings.HasSuffix(list, "connected  -") {
		t.Errorf("the list says:\n%s", list)
	}
}

// A server that is killed during a write knows afterwards what it has written, even on a lock that hides its PINs.
func TestZWave_ServerKilledDuringWrite(t *testing.T) {
	t.Parallel()
	h := newHome(t, zwave.Masked)
	lock := h.gateway.Lease(t, zwave.Masked)
	lock.Program(t, 1, "11223344") // an unmanaged code, which shows that the lock hides PINs
	h.within("the lock appears", func() bool { return len(h.locks()) == 1 })
	device := h.locks()[0]
	unmanaged := func() int {
		var out struct {
			Codes []any `json:"access_codes"`
		}
		h.post(h.server, h.key, "/access_codes/unmanaged/list", fmt.Sprintf(`{"device_id":%q}`, device), &out)
		return len(out.Codes)
	}
	h.within("the unmanaged code appears", func() bool { return unmanaged() == 1 })
	killed := func(path, body string) (code string) {
		t.Helper()
		var out struct {
			Code shownCode `json:"access_code"`
		}
		if status := h.post(h.server, h.key, path, body, &out); status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
		h.within("the write is on its way", func() bool { return h.gateway.Paused(t) })
		if err := h.process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = h.process.Wait()
		h.gateway.Resume(t)
		h.server, h.process = h.serve()
		return out.Code.ID
	}
	want := []string{"11223344"}
	for pin, hang := range map[string]string{"86420975": "before", "75319864": "after"} {
		lock.Fault(t, zwave.Faults{Hang: hang})
		code := killed("/access_codes/create", fmt.Sprintf(`{"device_id":%q,"code":%q}`, device, pin))
		h.within("the code is set", func() bool { return h.code(code).Status == "set" })
		want = append(want, pin)
		slices.Sort(want)
		if got := pins(t, lock); !slices.Equal(got, want) || unmanaged() != 1 {
			t.Fatalf("killed %s the lock has it: %d codes are on it, %d are unmanaged", hang, len(got), unmanaged())
		}

		changed := "9" + pin[1:]
		lock.Fault(t, zwave.Faults{Hang: hang})
		killed("/access_codes/update", fmt.Sprintf(`{"access_code_id":%q,"code":%q}`, code, changed))
		want[slices.Index(want, pin)] = changed
		slices.Sort(want)
		h.within("the lock has the changed code", func() bool {
			return slices.Equal(pins(t, lock), want) && h.code(code).Status == "set" && unmanaged() == 1
		})
	}
}
