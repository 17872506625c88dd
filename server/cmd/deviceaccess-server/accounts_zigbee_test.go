package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/gateways/zigbee"
)

// A Zigbee2MQTT can be connected. Its lock, the codes on the lock, and outages show in the API.
func TestZigbee2MQTT_Lifecycle(t *testing.T) {
	t.Parallel()
	g := zigbee.Start(t, zigbee.Plain)
	lock := g.Lease(t, zigbee.Plain)
	user, password := g.User(t)
	p := newProgram(t)
	r, _ := p.serve()
	key := p.ok("keys", "create", "--workspace", p.ok("workspaces", "create", "Home"))
	connect := []string{
		"accounts",
		"connect",
		"zigbee2mqtt",
		"--broker",
		g.Broker,
		"--topic",
		zigbee.Topic,
		"--username",
		user,
		"--password-file",
	}
	if _, err := p.run(
		append(connect, p.file("wrong", "no password"))...); err == nil ||
		!strings.Contains(err.Error(), "the user name or the password") {
		t.Errorf("a wrong password: %v", err)
	}
	account := p.ok(append(connect, p.file("password", password+"\n"))...)
	var device string
	p.until("the lock appears", func() bool {
		var out struct {
			Devices []struct {
				ID       string `json:"device_id"`
				Type     string `json:"device_type"`
				Account  string `json:"connected_account_id"`
				Provider struct {
					Name string `json:"device_provider_name"`
				} `json:"device_provider"`
			} `json:"devices"`
		}
		p.post(r, key, "/devices/list", "{}", &out)
		if len(out.Devices) == 0 {
			return false
		}
		d := out.Devices[0]
		if device = d.ID; d.Type != "zigbee_lock" || d.Provider.Name != "zigbee2mqtt" || d.Account != account {
			t.Fatalf("the device is shown as %+v", d)
		}
		return true
	})
	unmanaged := func() int {
		var out struct {
			Codes []any `json:"access_codes"`
		}
		p.post(r, key, "/access_codes/unmanaged/list", fmt.Sprintf(`{"device_id":%q}`, device), &out)
		return len(out.Codes)
	}
	p.until("the codes that are on it are shown", func() bool { return unmanaged() == len(lock.State(t).Codes) })
	var code struct {
		Code struct {
			ID string `json:"access_code_id"`
		} `json:"access_code"`
	}
	if status := p.post(
		r,
		key,
		"/access_codes/create",
		fmt.Sprintf(`{"device_id":%q,"code":"60216021","sync":true}`, device),
		&code,
	); status != http.StatusOK {
		t.Fatalf("create a code: %d", status)
	}
	slot := func() int {
		for n, pin := range lock.State(t).Codes {
			if pin == "60216021" {
				return n
			}
		}
		return 0
	}
	p.until("it is on the lock", func() bool { return slot() != 0 })
	lock.Program(t, slot(), "")
	p.until("a code deleted at the keypad is set again", func() bool { return slot() != 0 })
	lock.Program(t, lock.FreeSlot(t), "70317031")
	p.until("a code put on at the keypad is shown", func() bool { return unmanaged() == len(lock.State(t).Codes)-1 })

	told := func(eventType string) (n int) {
		var out struct {
			Events []struct {
				Type string `json:"event_type"`
			} `json:"events"`
		}
		p.post(r, key, "/events/list", `{"since":"2020-01-01T00:00:00Z","limit":500}`, &out)
		for _, e := range out.Events {
			if e.Type == eventType {
				n++
			}
		}
		return n
	}
	g.Kill()
	p.until("its outage is an event", func() bool { return told("connected_account.disconnected") == 1 })
	if list := p.ok("accounts", "list"); !strings.Contains(list, "not running") {
		t.Errorf("the list does not show the problem:\n%s", list)
	}
	g.Restart(t)
	p.until("its return is an event", func() bool { return told("connected_account.connected") == 2 })
	p.until("the list says so", func() bool { return strings.Contains(p.ok("accounts", "list"), "connected") })

	another, itsPassword := g.User(t)
	g.RemoveUser(t, user)
	p.until("the rejected user is an event", func() bool { return told("connected_account.disconnected") == 2 })
	change := []string{"accounts", "update", "--username", another, "--password-file"}
	if _, err := p.run(
		append(change, p.file("wrong again", "no password"), account)...); err == nil ||
		!strings.Contains(err.Error(), "the user name or the password") {
		t.Errorf("updated with a wrong password: %v", err)
	}
	p.ok(append(change, p.file("another", itsPassword+"\n"), account)...)
	p.until("the login of another user is an event", func() bool { return told("connected_account.connected") == 3 })
	lock.Program(t, slot(), "")
	p.until("the lock is looked after again", func() bool { return slot() != 0 })

	before := len(lock.State(t).Codes)
	p.ok("accounts", "disconnect", "--yes", account)
	if got := len(lock.State(t).Codes); got != before {
		t.Errorf("%d codes are on the lock, %d were", got, before)
	}
}
