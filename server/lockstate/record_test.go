package lockstate

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// A slot that was free is not the slot of a code whose removal failed, and our code is not deleted
// because of it.
func TestFreedSlot_BelongsToNextCode(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "5")
	b.pass(time.Minute)
	b.deleteCode(c)
	b.removal(b.work(c), false,
		&Failure{Class: FailedForNow, Message: "busy"})
	b.read(found("9", "9999"))
	next, _ := b.create("4711")
	w := b.work(next)
	b.begin(w)
	b.place(w, "5") // the answer is lost
	b.read(found("9", "9999"), found("5", "4711"))
	if got := b.managed(); len(got) != 1 || got[0].ID != next.ID || got[0].Status != StatusSet {
		t.Errorf("%d managed codes", len(got))
	}
}

func TestDeletion_WaitsForUncertainWrite(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	a := b.deleteCode(c)
	b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "no answer"}})
	if len(b.managed()) != 1 || b.attempt(a).Status != Pending {
		t.Fatal("the code counts as gone, although it may still arrive")
	}
	b.read(Found{
		Ref:       "r1",
		Key:       c.ID,
		PIN:       "2580",
		Confirmed: true,
	})
	if w := b.work(c); w.Action != Delete || w.Ref != "r1" {
		t.Errorf("planned action %q of %q", w.Action, w.Ref)
	}
}

func TestChange_DuringRefusedWrite(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, first := b.create("2580")
	w := b.work(c)
	b.begin(w)
	second := b.update(c, change{PIN: "2581"})
	b.end(w, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no such PIN"}})
	if a, z := b.attempt(first).Status, b.attempt(second).Status; a != Failed || z != Pending {
		t.Errorf("attempts %s and %s", a, z)
	}
	if w := b.work(c); w.Action != Put || w.PIN != "2581" {
		t.Errorf("planned action %q", w.Action)
	}
}

func TestChange_DuringAcceptedWriteIsSentImmediately(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "r1"})
	b.update(c, change{PIN: "2581"})
	if w := b.work(c); w.Action != Put || w.PIN != "2581" || w.Ref != "r1" {
		t.Errorf("planned action %q", w.Action)
	}
}

// A vendor with numbered slots assigns the slot of a vanished code to the next one.
func TestVanishedCode_ReferenceIsReused(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	two, _ := b.create("2581")
	one := b.on("2580", "3")
	b.set(two, "3")
	b.read(found("3", "2581"))
	if got := b.code(two.ID); got.Status != StatusSet {
		t.Errorf("the new code: status %s", got.Status)
	}
	if w := b.work(one); w.Action != Put || w.Ref != "" {
		t.Errorf("planned action %q of %q for the other code", w.Action, w.Ref)
	}
}

// A vendor with idempotent creates answers a repeated create with the first code. If it hides PINs,
// the answer does not show which PIN the code has.
func TestRepeatedCreate_OtherPINHidden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// unlisted and rigid are what the lock cannot do: list codes, and change them in place.
		unlisted, rigid bool
		doubt           func(b *bed, c view) Outcome
		shown           bool
	}{
		"confirmed": {false, false, func(b *bed, c view) Outcome {
			return Outcome{Ref: "r1", Confirmed: true}
		}, false},
		"accepted": {false, false, func(b *bed, c view) Outcome { return Outcome{Ref: "r1"} }, true},
		"confirmed and listed late, no in-place changes": {false, true, func(b *bed, c view) Outcome {
			return Outcome{Ref: "r1", Confirmed: true}
		}, false},
		"accepted, no in-place changes": {false, true, func(b *bed, c view) Outcome { return Outcome{Ref: "r1"} }, true},
		"second answer lost, too": {false, false, func(b *bed, c view) Outcome {
			b.begin(b.work(c))
			b.read(found("k9", ""))
			return Outcome{Ref: "r1", Confirmed: true}
		}, false},
		"without a code list": {true, false, func(b *bed, c view) Outcome {
			return Outcome{Ref: "r1", Confirmed: true}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.device.Capabilities.PINVisible = false
			b.device.Capabilities.ListCodes, b.device.Capabilities.ModifyInPlace = !c.unlisted, !c.rigid
			code, _ := b.create("2580")
			b.begin(b.work(code)) // the answer is lost
			b.read(found("k9", ""))
			b.update(code, change{PIN: "1357"})
			o := c.doubt(b, code)
			w := b.work(code)
			if w.Action != Put || !w.New {
				t.Fatalf("planned action %q", w.Action)
			}
			b.begin(w)
			b.end(w, o)
			masked := Found{Ref: "r1", Key: code.ID, Confirmed: true}
			if !c.unlisted {
				for _, list := range [][]Found{{found("k9", "")}, {found("k9", ""), masked}}[:1+map[bool]int{true: 1}[c.shown]] {
					b.pass(time.Second)
					b.read(list...)
				}
			}
			if got := b.code(code.ID); got.Status != StatusSetting {
				t.Errorf("status %s", got.Status)
			}
			w = b.work(code)
			if want := map[bool]Action{true: Delete, false: Put}[c.rigid]; w.Action != want ||
				w.Ref != "r1" {
				t.Fatalf("planned action %q of %q, want %q", w.Action, w.Ref, want)
			}
			if w.Action == Delete {
				b.taken(w)
				b.pass(30 * time.Second) // a stale list still shows the old code
				b.read(found("k9", ""))
				w = b.work(code)
			}
			b.begin(w)
			b.end(w, Outcome{Ref: "r2", Confirmed: true})
			if got := b.code(code.ID); w.PIN != "1357" || got.Status != StatusSet {
				t.Errorf("after the second put: status %s", got.Status)
			}
		})
	}
}

// If the second answer is lost as well, the listed code may be either of the two.
func TestRepeatedCreate_TwoLostAnswersHiddenPIN(t *testing.T) {
	t.Parallel()
	for inPlace, want := range map[bool]Action{true: Put, false: Delete} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.device.Capabilities.PINVisible = false
			b.device.Capabilities.ModifyInPlace = inPlace
			code, _ := b.create("2580")
			b.begin(b.work(code))
			b.update(code, change{PIN: "1357"})
			b.begin(b.work(code))
			for _, confirmed := range []bool{false, true, true} {
				b.read(Found{Ref: "r1", Key: code.ID, Confirmed: confirmed})
			}
			if got, w := b.code(code.ID), b.work(code); got.Status != StatusSetting || w.Action != want ||
				w.Ref != "r1" {
				t.Errorf("status %s, planned action %q of %q", got.Status, w.Action, w.Ref)
			}
		})
	}
}

// Repeating a create with the same PIN yields the same code.
func TestRepeatedCreate_SamePIN(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.device.Capabilities.PINVisible = false
	code, _ := b.create("2580")
	b.begin(b.work(code))
	b.read(found("k9", ""))
	b.update(code, change{Name: new("Friend")})
	b.set(code, "r1")
	if got := b.code(code.ID); got.Status != StatusSet {
		t.Errorf("status %s", got.Status)
	}
}

// A code moved to a later time is removed by the server, whatever is requested meanwhile and
// however that ends.
func TestRemovalOfOurs_IsNotExternal(t *testing.T) {
	t.Parallel()
	for name, removal := range map[string]func(b *bed, w *Operation){
		"answered": func(b *bed, w *Operation) {
			b.removal(w, true, nil)
		},
		"a crash": func(*bed, *Operation) {},
		"in doubt": func(b *bed, w *Operation) {
			b.removal(w, false, &Failure{Class: FailedForNow, Message: "no answer", Unsure: true})
		},
	} {
		for _, allowed := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", allowed", false: ", not allowed"}[allowed], func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "smartthings")
				c := b.onBetween("2580", b.now(), b.now().Add(300*time.Hour))
				b.pass(time.Hour)
				b.update(c, change{
					ExternalModificationAllowed: &allowed,
					StartsAt:                    new(b.now().Add(100 * time.Hour)),
				},
				)
				w := b.work(c)
				if w.Action != Delete {
					t.Fatalf("planned action %q", w.Action)
				}
				if !b.started(w) {
					t.Fatal("the operation is not wanted")
				}
				b.update(c, change{StartsAt: new(b.now())})
				removal(b, w)
				b.read(found("k9", "9999"))
				b.pass(time.Minute)
				if w := b.work(c); w.Action != Put || !w.New {
					t.Errorf("planned action %q", w.Action)
				}
				if got := b.code(c.ID); len(got.Errors)+len(got.Warnings) > 0 {
					t.Errorf("errors %v, warnings %v", got.Errors, got.Warnings)
				}
				if n := countOf(b.events(c.ID), "access_code.deleted_external_to_seam"); n > 0 {
					t.Error("the code was announced as deleted externally")
				}
			})
		}
	}
}

// A slow lock removes a code on our behalf, however late.
func TestRemovalOfOurs_ConfirmedLate(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c := b.onBetween("2580", b.now(), b.now().Add(300*time.Hour))
	b.update(c, change{StartsAt: new(b.now().Add(100 * time.Hour))})
	w := b.work(c)
	if !b.started(w) {
		t.Fatal("the operation is not wanted")
	}
	b.removal(w, false, nil)
	b.pass(2 * time.Minute)
	b.look()
	b.update(c, change{StartsAt: new(b.now())})
	b.read(found("k9", "9999"))
	if w := b.work(c); w.Action != Put || !w.New {
		t.Errorf("planned action %q", w.Action)
	}
	if countOf(b.events(c.ID), "access_code.deleted_external_to_seam") > 0 {
		t.Error("the code was announced as deleted externally")
	}
}

// If PINs are hidden, a slot belongs to the code that was written there last.
func TestHiddenPIN_SlotBelongsToLastWriter(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	first, _ := b.create("2580")
	second, _ := b.create("2581")
	for _, c := range []view{first, second} {
		w := b.work(c)
		if !b.started(w) {
			t.Fatal("the operation is not wanted")
		}
		b.place(w, "3")
		if c.ID == first.ID { // the lock does not accept it
			b.end(w,
				Outcome{Failure: &Failure{Class: FailedForNow, Message: "no"}})
		}
	}
	b.observed(0, []Found{{Ref: "3", Confirmed: true}})
	if a, z := b.code(first.ID), b.code(second.ID); a.Status == StatusSet || z.Status != StatusSet {
		t.Errorf("first attempt %s, second %s", a.Status, z.Status)
	}
}

// The removal needs a confirmation.
func TestTimeBoundCode_LateRemovalIsAnError(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.onBetween("2580", b.now(), b.now().Add(time.Hour))
	b.pass(time.Hour)
	tries := 0
	for range 6 {
		w := b.work(c)
		if w.Action != Delete {
			t.Fatalf("planned action %q", w.Action)
		}
		b.removal(w, false,
			&Failure{Class: FailedForNow, Message: "the lock jammed."})
		tries++
		b.pass(time.Hour)
	}
	if got := b.code(c.ID); !got.hasError("failed_to_expire") {
		t.Errorf("after %d tries: errors %v", tries, got.Errors)
	}
	if got := b.told("access_code.failed_to_expire", "access_code.failed_to_remove_from_device"); !slices.Equal(got,
		[]string{"access_code.failed_to_expire"}) {
		t.Errorf("events %v", got)
	}
}

// A code may change while its write is uncertain. The pending PIN still identifies it.
func TestUncertainWrite_CodeChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(b *bed, code view)
		want Action
	}{
		"changed":             {func(*bed, view) {}, Put},
		"changed and deleted": {func(b *bed, code view) { b.deleteCode(code) }, Delete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "smartthings")
			code, _ := b.create("2580")
			w := b.work(code)
			b.begin(w)
			b.end(w, Outcome{Failure: &Failure{Class: FailedForNow, Message: "no answer"}})
			b.update(code, change{PIN: "9988"})
			c.then(b, code)
			b.read(found("5", "2580"))
			if w := b.work(code); w.Action != c.want || w.Ref != "5" || len(b.unmanaged()) != 0 {
				t.Errorf("planned action %q of %q, %d unmanaged codes", w.Action, w.Ref, len(b.unmanaged()))
			}
		})
	}
}

// A write whose answer was lost may have arrived. The refusal of its successor does not change
// that, because the first write may be the cause.
func TestUncertainWrite_SurvivesRefusal(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"deleted meanwhile": true, "wanted": false} {
		for what, f := range map[string]Failure{
			"has the PIN": {Class: FailedDuplicate, Message: "taken"},
			"is full":     {Class: FailedFull, Message: "no room"},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				b := newBed(t, "smartthings")
				c, _ := b.create("2580")
				b.begin(b.work(c)) // the answer is lost
				b.read()
				w := b.work(c)
				b.begin(w)
				if deleted {
					b.deleteCode(c)
				}
				b.end(w, Outcome{Failure: &f})
				b.pass(5 * time.Second)
				b.read()
				if len(b.managed()) != 1 {
					t.Fatal("the code counts as gone, although it may still arrive")
				}
				b.read(found("5", "2580"))
				if n := len(b.unmanaged()); n > 0 {
					t.Errorf("%d unmanaged codes", n)
				}
				w = b.work(c)
				if deleted {
					if w.Action != Delete || w.Ref != "5" {
						t.Errorf("planned action %q of %q", w.Action, w.Ref)
					}
				} else if got := b.code(c.ID); w.Action != Nothing || got.Status != StatusSet || len(got.Errors) > 0 {
					t.Errorf("planned action %q, status %s, errors %v", w.Action, got.Status, got.Errors)
				}
			})
		}
	}
}

// The uncertainty ends after a while.
func TestUncertainWrite_EndsAfterTimeout(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c, _ := b.create("2580")
	b.begin(b.work(c))
	b.read()
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Failure: &Failure{Class: FailedFull, Message: "no room"}})
	b.pass(2 * time.Minute)
	b.read()
	b.read(found("5", "2580")) // entered at the keypad
	if got := b.code(c.ID); got.AppliedGen > 0 || len(b.unmanaged()) != 1 {
		t.Errorf("status %s, %d unmanaged codes", got.Status, len(b.unmanaged()))
	}
	if b.deleteCode(c); len(b.managed()) > 0 {
		t.Error("the deletion waits for the uncertain write")
	}
}

// unkeepable lists references that the database or an index cannot store.
var unkeepable = map[string]string{
	"with a NUL": "k\x001",
	"no UTF-8":   "k\xff",
	"of 5 kB":    strings.Repeat("k", 5000),
}

// A write that returns such a reference has failed, because the code could not be removed.
func TestUnstorableReference_WriteFails(t *testing.T) {
	t.Parallel()
	for name, ref := range unkeepable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c, a := b.create("2580")
			w := b.work(c)
			b.begin(w)
			b.end(w, Outcome{Ref: ref, Confirmed: true})
			if a = b.attempt(a); a.Status != Failed || !strings.Contains(a.Message, "reference") {
				t.Errorf("attempt %s: %s", a.Status, a.Message)
			}
			if got := b.code(c.ID); got.Status != StatusUnset || len(got.Errors) != 1 {
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
		})
	}
}

// An operation that nothing needs any more is not sent.
func TestStart_ObsoleteOperation(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(b *bed, c view, op *Operation){
		"changed":             func(b *bed, c view, _ *Operation) { b.update(c, change{PIN: "4711"}) },
		"deleted":             func(b *bed, c view, _ *Operation) { b.deleteCode(c) },
		"device removed":      func(b *bed, _ view, _ *Operation) { b.device.Removed = true },
		"device unmanaged":    func(b *bed, _ view, _ *Operation) { b.device.Managed = false },
		"code unmanaged":      func(b *bed, c view, _ *Operation) { b.codes[b.index(c.ID)].Managed = false },
		"no action":           func(_ *bed, _ view, op *Operation) { op.Action = Nothing },
		"a wait":              func(_ *bed, _ view, op *Operation) { op.Action = Await },
		"removal of a wanted": func(_ *bed, _ view, op *Operation) { op.Action = Delete },
		"search for a wanted": func(_ *bed, _ view, op *Operation) { op.Action = Find },
		"another code":        func(b *bed, _ view, op *Operation) { op.Code = b.newID() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c := b.on("2580", "k1")
			b.update(c, change{PIN: "2581"})
			w := b.work(c)
			then(b, c, w)
			before := slices.Clone(b.codes)
			var still bool
			b.must(b.try(func(l *Lock) error { still = l.Start(*w); return nil }))
			if still || !reflect.DeepEqual(before, b.codes) {
				t.Error("the operation is wanted")
			}
		})
	}
}

func TestRecordPlace_ObsoleteWrite(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(b *bed, c view){
		"not started":    func(b *bed, c view) { b.edit(func(c *Code) { c.clearWrite() }) },
		"deleted":        func(b *bed, c view) { b.deleteCode(c) },
		"device removed": func(b *bed, _ view) { b.device.Removed = true },
		"unmanaged":      func(b *bed, _ view) { b.device.Managed = false },
		"gone":           func(b *bed, c view) { b.codes = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			c, _ := b.create("2580")
			w := b.work(c)
			b.begin(w)
			then(b, c)
			b.step(func(l *Lock) {
				if l.RecordPlace(*w, "5") {
					t.Error("the place is recorded")
				}
			})
		})
	}
}

// A vendor that refused nothing to send makes no code uncertain.
func TestUnsentWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listed, deleted, uncertain bool
		placed                     string
		left                       int
		clear                      bool
	}{
		"a new code":                {left: 1, clear: true},
		"deleted meanwhile":         {deleted: true, left: 0},
		"an earlier write may be":   {uncertain: true, left: 1},
		"it had a place":            {placed: "5", left: 1},
		"a read shows what arrived": {listed: true, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := unlisted(t)
			b.device.Capabilities.ListCodes = c.listed
			code, _ := b.create("2580")
			w := b.work(code)
			b.begin(w)
			if c.uncertain {
				w = b.work(code)
				b.begin(w)
			}
			if c.placed != "" {
				b.place(w, c.placed)
			}
			if c.deleted {
				b.deleteCode(code)
			}
			b.end(w, Outcome{Unsent: true})
			if len(b.managed()) != c.left {
				t.Fatalf("%d codes", len(b.managed()))
			}
			if c.left > 0 && (b.code(code.ID).WriteGen == 0) != c.clear {
				t.Errorf("uncertain: %t", b.code(code.ID).WriteGen > 0)
			}
			if c.clear {
				b.deleteCode(code)
			}
			if len(b.tombstones) > 0 {
				t.Error("the code counts as sent")
			}
		})
	}
}

// A creation may return a code that differs from what was asked for. It is changed, or removed.
func TestCreated_Differently(t *testing.T) {
	t.Parallel()
	mismatch := &Failure{Class: FailedForNow, Message: "another name"}
	for name, c := range map[string]struct {
		rigid, deleted bool
		failure        *Failure
		want           Action
	}{
		"changed in place":        {false, false, mismatch, Put},
		"recreated":               {true, false, mismatch, Delete},
		"deleted meanwhile":       {false, true, mismatch, Delete},
		"refused for all changes": {false, false, &Failure{Class: FailedInvalid, Message: "no"}, Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			b.device.Capabilities.ModifyInPlace = !c.rigid
			code, _ := b.create("2580")
			w := b.work(code)
			b.begin(w)
			if c.deleted {
				b.deleteCode(code)
			}
			b.end(w, Outcome{Ref: "k1", Failure: c.failure})
			b.pass(time.Minute)
			if w := b.work(code); w.Action != c.want || w.Action != Nothing && w.Ref != "k1" {
				t.Errorf("planned action %q of %q", w.Action, w.Ref)
			}
			if got := b.code(code.ID); got.Ref != "k1" || got.Status == StatusSet {
				t.Errorf("status %s at %q", got.Status, got.Ref)
			}
		})
	}
}

// The outcome of a write that comes after the deletion of its code leads to the removal.
func TestDeletion_DuringWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on   bool
		o    Outcome
		left int
		want Action
	}{
		"accepted":                 {false, Outcome{Ref: "k1"}, 1, Delete},
		"confirmed":                {false, Outcome{Ref: "k1", Confirmed: true}, 1, Delete},
		"refused":                  {false, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no"}}, 0, Nothing},
		"failed":                   {false, Outcome{Failure: &Failure{Class: FailedForNow, Message: "no"}}, 1, Await},
		"a change was refused":     {true, Outcome{Failure: &Failure{Class: FailedInvalid, Message: "no"}}, 1, Delete},
		"a change may have failed": {true, Outcome{Failure: &Failure{Class: FailedForNow, Message: "no"}}, 1, Delete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "august")
			code, _ := b.create("2580")
			if c.on {
				b.set(code, "k1")
				b.update(code, change{PIN: "4711"})
			}
			w := b.work(code)
			b.begin(w)
			b.deleteCode(code)
			b.end(w, c.o)
			if len(b.managed()) != c.left {
				t.Fatalf("%d codes", len(b.managed()))
			}
			if w := b.work(code); w.Action != c.want {
				t.Errorf("planned action %q", w.Action)
			}
			if got := b.told("access_code.failed_to_set_on_device", "access_code.failed_to_update"); len(got) > 0 {
				t.Errorf("events %v", got)
			}
		})
	}
}

// A change shows that the code is not on its lock, whose codes cannot be read.
func TestNoCodeList_ChangeOfAbsentCode(t *testing.T) {
	t.Parallel()
	absent := Outcome{Failure: &Failure{Class: FailedForNow, Message: "unknown code", Absent: true}}
	b := unlisted(t)
	c := b.on("2580", "k1")
	b.update(c, change{PIN: "4711"})
	w := b.work(c)
	b.begin(w)
	b.end(w, absent)
	if n := countOf(b.events(c.ID), "access_code.deleted_external_to_seam"); n != 1 {
		t.Errorf("%d events", n)
	}
	w = b.work(c)
	if w.Action != Put || !w.New || w.PIN != "4711" {
		t.Fatalf("planned action %q, new %t", w.Action, w.New)
	}
	// A vendor that forgets each code is asked with pauses.
	for range 5 {
		b.begin(w)
		b.end(w, Outcome{Ref: "k2"})
		b.begin(w)
		w.Ref = "k2"
		b.end(w, absent)
		w = b.work(c)
		b.pass(time.Hour)
		if w.Action == Put {
			t.Fatal("the code is put again without a pause")
		}
		w = b.work(c)
	}
	if got := b.code(c.ID); !got.hasError(domain.ErrFailedToSet) {
		t.Errorf("errors %v", got.Errors)
	}
}

// A read between a write and its answer shows the code as an unmanaged one.
func TestWrite_ShownBeforeAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c, _ := b.create("2580")
	w := b.work(c)
	b.begin(w)
	b.read(found("5", ""))
	if len(b.unmanaged()) != 1 {
		t.Fatalf("%d unmanaged codes", len(b.unmanaged()))
	}
	b.end(w, Outcome{Ref: "5", Confirmed: true})
	if got := b.code(c.ID); len(b.unmanaged()) != 0 || got.Ref != "5" || got.Status != StatusSet {
		t.Errorf("%d unmanaged codes, status %s", len(b.unmanaged()), got.Status)
	}
}

// The answer of a write is late for a code that changed meanwhile, and a read shows the former state.
func TestWrite_ConfirmedByReadAfterChange(t *testing.T) {
	t.Parallel()
	b := newBed(t, "smartthings")
	c := b.on("2580", "5")
	b.pass(time.Minute)
	b.update(c, change{Name: new("Guest")})
	w := b.work(c)
	b.begin(w)
	b.end(w, Outcome{Ref: "5"})
	b.update(c, change{Name: new("Cleaner")})
	b.read(found("5", ""))
	if got := b.code(c.ID); got.AppliedGen != 2 || got.Status == StatusSet {
		t.Errorf("confirmed generation %d, status %s", got.AppliedGen, got.Status)
	}
	if w := b.work(c); w.Action != Put || w.Name != "Cleaner" {
		t.Errorf("planned action %q", w.Action)
	}
	// Another code may wait for the PIN.
	if pin := b.pinOf(c); pin != c.PIN {
		t.Error("the PIN that was sent does not count as the one on the device")
	}
	b.refuse(c)
	if got := b.code(c.ID); got.Status != StatusSet {
		t.Errorf("refused: status %s", got.Status)
	}
}

// pinOf returns the PIN that a code has on the device, as far as known.
func (b *bed) pinOf(c view) PIN { return b.load().Code(c.ID).pinOnDevice() }

// A vendor that does not support the removal of its own codes says so once.
func TestRemovalOfUnmanaged_Unsupported(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	b.read(found("k1", "2580"))
	u := b.unmanaged()[0]
	a := b.deleteUnmanaged(u)
	w := b.work(u)
	b.started(w)
	b.removal(w, false, &Failure{Class: FailedUnsupported, Message: "not ours"})
	if got := b.attempt(a); got.Status != Failed || got.ErrorType != "cannot_delete_unmanaged_access_code" {
		t.Errorf("attempt %s %s", got.Status, got.ErrorType)
	}
	if got := b.code(u.ID); got.Status != StatusSet || got.RemovingSince != nil || b.work(u).Action != Nothing {
		t.Errorf("status %s", got.Status)
	}
}

// Outcomes of operations of codes that are gone, or that stay, have no effect.
func TestRecord_ObsoleteOutcome(t *testing.T) {
	t.Parallel()
	b := newBed(t, "august")
	c := b.on("2580", "k1")
	gone := &Operation{Code: b.newID(), Action: Put, Gen: 1}
	before := slices.Clone(b.codes)
	b.end(gone, Outcome{Ref: "k2", Confirmed: true})
	b.end(&Operation{Code: c.ID, Action: Delete, Ref: "k1"}, Outcome{Confirmed: true})
	if !reflect.DeepEqual(before, b.codes) {
		t.Error("the codes have changed")
	}
}
