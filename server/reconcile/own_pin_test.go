package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A change that was made, and whose answer was lost, is refused when it is sent again: the vendor names the code itself, which has its PIN.
func TestAPINThatIsRefusedForTheCodeItselfIsThere(t *testing.T) {
	t.Parallel()
	itself := &access.Failure{Class: access.FailedDuplicate, Message: "taken", ConflictRef: "k1"}
	frame := access.CodeChange{StartsAt: "2020-01-01T00:00:00Z", EndsAt: "2099-01-01T00:00:00Z"}
	for name, c := range map[string]struct {
		more  string
		shown func() access.Found // nil: nobody can look
		code  string              // an error that stands; empty: it is as it is to be
		ch    access.CodeChange
		then  access.CodeChange // before there was an answer
	}{
		"PINs are hidden": {`{}`, func() access.Found { return found("k1", "") }, "", access.CodeChange{PIN: "2591"}, access.CodeChange{}},
		"it is listed with that": {`{}`, func() access.Found {
			f := found("k1", "")
			f.Failure = itself
			return f
		}, "", access.CodeChange{PIN: "2591"}, access.CodeChange{}},
		"nobody can look": {`{"list_codes": false}`, nil, "", access.CodeChange{PIN: "2591"}, access.CodeChange{}},
		"nobody can look, and it is another change that is refused": {`{"list_codes": false}`, nil, "duplicate_code_on_device", access.CodeChange{PIN: "2591"}, frame},
		"nobody can look, the PIN is as it was":                     {`{"list_codes": false}`, nil, "duplicate_code_on_device", frame, access.CodeChange{}},
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
			b.begin(b.work(code)) // and no answer comes
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
					t.Fatalf("it is tried again and again: %v", b.code(code.ID).Errors)
				}
			}
			got := b.code(code.ID)
			switch {
			case c.code == "" && (b.attempt(a).Status != access.Succeeded || got.Status != access.StatusSet || len(got.Errors) > 0):
				t.Errorf("it is %s with %v, its attempt %s", got.Status, got.Errors, b.attempt(a).Status)
			case c.code != "" && (len(got.Errors) != 1 || got.Errors[0].Code != c.code || got.Errors[0].Other != [16]byte{}):
				t.Errorf("it is %s with %v", got.Status, got.Errors)
			}
		})
	}
}
