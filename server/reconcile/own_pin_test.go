package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A change succeeded, but its answer was lost. The retry is refused because the code itself has the
// PIN.
func TestDuplicatePIN_OfCodeItself(t *testing.T) {
	t.Parallel()
	itself := &access.Failure{Class: access.FailedDuplicate, Message: "taken", ConflictRef: "k1"}
	frame := access.CodeChange{StartsAt: "2020-01-01T00:00:00Z", EndsAt: "2099-01-01T00:00:00Z"}
	for name, c := range map[string]struct {
		more  string
		shown func() access.Found // nil: the device has no code list
		code  string              // remaining error; empty: none
		ch    access.CodeChange
		then  access.CodeChange // change before the answer
	}{
		"PINs are hidden": {`{}`, func() access.Found { return found("k1", "") }, "", access.CodeChange{PIN: "2591"}, access.CodeChange{}},
		"listed with the PIN": {`{}`, func() access.Found {
			f := found("k1", "")
			f.Failure = itself
			return f
		}, "", access.CodeChange{PIN: "2591"}, access.CodeChange{}},
		"no code list":                         {`{"list_codes": false}`, nil, "", access.CodeChange{PIN: "2591"}, access.CodeChange{}},
		"no code list, another change refused": {`{"list_codes": false}`, nil, "duplicate_code_on_device", access.CodeChange{PIN: "2591"}, frame},
		"no code list, PIN unchanged":          {`{"list_codes": false}`, nil, "duplicate_code_on_device", frame, access.CodeChange{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			_, err := b.db.Pool.Exec(t.Context(),
				`update devices set capabilities = (capabilities - 'pin_visible') || $1::jsonb`, c.more)
			b.must(err)
			code := b.on("2580", "k1")
			clock.pass(time.Minute)
			c.ch.ID = code.ID.String()
			a := b.update(c.ch)
			b.begin(b.work(code)) // the answer is lost
			if c.then.EndsAt != "" {
				c.then.ID = code.ID.String()
				a = b.update(c.then)
			}
			for n := 0; b.attempt(a).Status == access.Pending; n++ {
				if c.shown != nil {
					b.read(c.shown())
				}
				if w := b.work(code); w.Action == access.Put {
					b.begin(w)
					b.end(w, access.PutOutcome{Failure: itself})
				}
				if clock.pass(30 * time.Second); n > 10 {
					t.Fatalf("endless retries: %v", b.code(code.ID).Errors)
				}
			}
			got := b.code(code.ID)
			switch {
			case c.code == "" && (b.attempt(a).Status != access.Succeeded || got.Status != access.StatusSet || len(got.Errors) > 0):
				t.Errorf("status %s, errors %v, attempt %s", got.Status, got.Errors, b.attempt(a).Status)
			case c.code != "" && (len(got.Errors) != 1 || got.Errors[0].Code != c.code || got.Errors[0].Other != [16]byte{}):
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
		})
	}
}
