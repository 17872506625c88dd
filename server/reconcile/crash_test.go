package reconcile_test

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// What a holder that has crashed was writing to a device that hides PINs is known by its place.
func TestHiddenCodeOfACrashIsKnownByItsPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found access.Found
		ours  bool
	}{
		"there":                  {found("7", ""), true},
		"elsewhere":              {found("8", ""), false},
		"changed at the lock":    {access.Found{Ref: "7", Confirmed: true, Changed: true}, false},
		"another key":            {access.Found{Ref: "7", Confirmed: true, Key: "another"}, false},
		"another PIN that shows": {found("7", "9999"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			code, _ := b.create("2580")
			w := b.work(code)
			b.begin(w)
			b.must(b.access.RecordPlace(t.Context(), holder{}, b.id(), w, "7"))
			b.read(c.found)
			if got := b.code(code.ID); (got.Status == access.StatusSet) != c.ours || (len(b.unmanaged()) == 0) != c.ours {
				t.Errorf("it is %s, beside %d unmanaged codes", got.Status, len(b.unmanaged()))
			}
		})
	}
}

// Whether a change of a PIN that is hidden has arrived before a crash nobody knows: it is written again.
func TestHiddenChangeOfACrashIsWrittenAgain(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	c := b.on("2580", "7")
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "9988"})
	b.begin(b.work(c))
	b.read(found("7", ""))
	w := b.work(c)
	if w.Action != access.Put || w.Ref != "7" {
		t.Fatalf("there is %q of %q to do", w.Action, w.Ref)
	}
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "7"}) // accepted: what it shows from then on is that
	b.read(found("7", ""))
	if got := b.code(c.ID); got.Status != access.StatusSet {
		t.Errorf("it is %s", got.Status)
	}
}
