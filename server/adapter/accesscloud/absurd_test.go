package accesscloud_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
)

// Given a broken or malicious vendor, the adapter rejects a response or returns plausible values.
func TestAbsurdResponses(t *testing.T) {
	t.Parallel()
	const user = `{"user_id":"u1","external_id":"k","full_name":"Jane Doe","email":"jane@example.com","phone":"+1555","starts_at":"2026-01-01T00:00:00Z","ends_at":"2027-01-01T00:00:00Z","suspended":false,"group_ids":["g1"],"entrance_ids":["e1"]}`
	for name, c := range map[string]struct {
		status int
		answer string
		ask    func(*adapterOf) error
		class  adapter.Class // of a rejected response
	}{
		"systems": {
			200, `{"systems":[{"system_id":"s1","name":"House","time_zone":"Europe/Berlin","online":true}]}`,
			(*adapterOf).systems, adapter.Transient,
		},
		"look": {
			200, `{"users":[` + user + `],"groups":[{"group_id":"g1","name":"Staff","entrance_ids":["e1"]}],"entrances":[{"entrance_id":"e1","name":"Door"}]}`,
			(*adapterOf).look, adapter.Transient,
		},
		"put": {200, user, (*adapterOf).put, adapter.Unconfirmed},
		"a refusal": {
			429, `{"error_code":"RATE_LIMITED","message":"tok-secret is too quick","retry_after_ms":1000}`,
			(*adapterOf).put, "",
		},
		"a deletion": {200, `{"ok":true}`, (*adapterOf).remove, adapter.Unconfirmed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := ""
			a := &adapterOf{t, vendor(t, func(w http.ResponseWriter,
				r *http.Request,
			) {
				says(c.status, "", text)(w, r)
			})}
			n := 0
			for twist, twisted := range adaptertest.Twists(t, c.answer) {
				text = twisted
				err := c.ask(a)
				e := adapter.AsError(err)
				switch {
				case err == nil:
				case e == nil:
					t.Errorf("%s: %v is not an *adapter.Error", twist, err)
				case c.class != "" && e.Class != c.class:
					t.Errorf("%s: the class is %s, want %s", twist, e.Class, c.class)
				case e.RetryAfter < 0 || e.RetryAfter > time.Hour || strings.Contains(e.Message, "tok-secret"):
					t.Errorf("%s: %+v", twist, e)
				}
				n++
			}
			text = c.answer
			if err := c.ask(a); n < 20 || (err == nil) != (c.status == 200) {
				t.Errorf("after %d absurd responses, a good response: %v", n, err)
			}
		})
	}
}

// adapterOf calls the adapter and checks the result.
type adapterOf struct {
	*testing.T
	adapter.AccessSystems
}

func (a *adapterOf) systems() error {
	systems, err := a.Systems(a.Context())
	for _, s := range systems {
		if s.Ref == "" || s.Ref == "." {
			a.Errorf("a system is called %q", s.Ref)
		}
	}
	return err
}

func (a *adapterOf) look() error {
	c, err := a.ReadSystem(a.Context(), "s1")
	for _, u := range c.Users {
		if u.Ref == "" || u.Ref == "." || len(u.Groups) > 1000 || len(u.Entrances) > 1000 {
			a.Errorf("a user is %+v", u)
		}
	}
	return err
}

func (a *adapterOf) put() error {
	ref, err := a.PutUser(a.Context(), "s1", adapter.AccessUser{Key: "k", FullName: "Jane Doe"})
	if err == nil && (ref == "" || ref == ".") {
		a.Errorf("a user is called %q", ref)
	}
	return err
}

func (a *adapterOf) remove() error { return a.DeleteUser(a.Context(), "s1", "u1") }
