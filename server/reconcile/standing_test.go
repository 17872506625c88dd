package reconcile_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

func countOf(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// A change that was refused leaves a code as it was, and as that it opens from its start.
func TestCodeWhoseChangeWasRefusedCountsAsItIs(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	from := clock.now().Add(50 * time.Hour)
	ahead, always := b.between("2580", from, from.Add(time.Hour)), b.on("4711", "k2")
	w := b.work(ahead)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
	refused := access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "not such a PIN"}}
	for c, want := range map[*access.Code]access.Status{&ahead: access.StatusUnset, &always: access.StatusSet} {
		b.update(access.CodeChange{ID: c.ID.String(), PIN: map[*access.Code]string{&ahead: "2581", &always: "4712"}[c]})
		w := b.work(*c)
		b.begin(w)
		b.end(w, refused)
		if got := b.code(c.ID); got.Status != want || len(got.Errors) != 1 {
			t.Errorf("refused it is %s with %v, want %s", got.Status, got.Errors, want)
		}
	}
	if w := b.look(); w.Due == nil || !w.Due.Equal(from) {
		t.Errorf("it is due at %v, want %v", w.Due, from)
	}
	clock.to(from)
	for range 2 {
		b.look()
	}
	if got := b.code(ahead.ID); got.Status != access.StatusSet {
		t.Errorf("from its start it is %s", got.Status)
	}
	if n := countOf(b.events(ahead.ID), "access_code.set_on_device"); n != 1 {
		t.Errorf("that it opens was told %d times", n)
	}
}

// What was asked for since the lock was read last is not given up because somebody had taken the code off before.
func TestChangeOfACodeThatWasDeletedAtTheLockIsMade(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
	c := b.on("2580", "k1")
	allowed := true
	b.update(access.CodeChange{ID: c.ID.String(), ExternalModificationAllowed: &allowed})
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "4711"})
	others := found("k9", "9999") // an empty list is doubted
	b.read(others)
	w := b.work(c)
	if w.Action != access.Put || w.PIN != "4711" || !w.New {
		t.Fatalf("there is %q to do", w.Action)
	}
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k2", Confirmed: true})
	b.read(others) // and once more, with nothing asked for: it stays off
	if w := b.work(c); w.Action != access.Nothing {
		t.Errorf("there is %q to do", w.Action)
	}
}

// A code whose time was moved ahead is taken off its lock by us, whatever is asked for meanwhile and however that ends.
func TestRemovalOfOursIsNotTakenForOneAtTheLock(t *testing.T) {
	t.Parallel()
	for name, removal := range map[string]func(b byHand, w access.CodeWork){
		"answered": func(b byHand, w access.CodeWork) {
			b.must(b.access.RecordDelete(b.Context(), holder{}, b.id(), w, true, nil))
		},
		"a crash": func(byHand, access.CodeWork) {},
		"in doubt": func(b byHand, w access.CodeWork) {
			b.must(b.access.RecordDelete(b.Context(), holder{}, b.id(), w, false, &access.Failure{Class: access.FailedForNow, Message: "no answer", Unsure: true}))
		},
	} {
		for _, allowed := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", allowed", false: ", not allowed"}[allowed], func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, "smartthings")
				c := b.between("2580", clock.now(), clock.now().Add(300*time.Hour))
				w := b.work(c)
				b.begin(w)
				b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
				clock.pass(time.Hour)
				b.update(
					access.CodeChange{
						ID:                          c.ID.String(),
						ExternalModificationAllowed: &allowed,
						StartsAt:                    clock.now().Add(100 * time.Hour).Format(time.RFC3339),
					},
				)
				w = b.work(c)
				if w.Action != access.Delete {
					t.Fatalf("there is %q to do", w.Action)
				}
				still, err := b.access.RecordDeleteStarted(t.Context(), holder{}, b.id(), w)
				if err != nil || !still {
					t.Fatal(still, err)
				}
				b.update(access.CodeChange{ID: c.ID.String(), StartsAt: clock.now().Format(time.RFC3339)})
				removal(b, w)
				b.read(found("k9", "9999"))
				clock.pass(time.Minute)
				if w := b.work(c); w.Action != access.Put || !w.New {
					t.Errorf("there is %q to do", w.Action)
				}
				if got := b.code(c.ID); len(got.Errors)+len(got.Warnings) > 0 {
					t.Errorf("it shows %v and %v", got.Errors, got.Warnings)
				}
				if n := countOf(b.events(c.ID), "access_code.deleted_external_to_seam"); n > 0 {
					t.Error("it was told as deleted by somebody else")
				}
			})
		}
	}
}

// A change that was refused does not keep a code off that somebody has deleted at the lock since.
func TestCodeWhoseChangeWasRefusedIsPutBack(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august", access: access.Options{ListLag: time.Nanosecond}})
	c := b.on("2580", "k1")
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2581"})
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "not such a PIN"}})
	b.read(found("k9", "9999"))
	if w := b.work(c); w.Action != access.Put || !w.New {
		t.Errorf("there is %q to do", w.Action)
	}
}

// A lock that takes its time to let a code go does it for us, however late.
func TestRemovalOfOursThatIsConfirmedLateIsOurs(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "smartthings")
	c := b.between("2580", clock.now(), clock.now().Add(300*time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
	b.update(access.CodeChange{ID: c.ID.String(), StartsAt: clock.now().Add(100 * time.Hour).Format(time.RFC3339)})
	w = b.work(c)
	if still, err := b.access.RecordDeleteStarted(t.Context(), holder{}, b.id(), w); err != nil || !still {
		t.Fatal(still, err)
	}
	b.must(b.access.RecordDelete(t.Context(), holder{}, b.id(), w, false, nil))
	clock.pass(2 * time.Minute)
	b.look()
	b.update(access.CodeChange{ID: c.ID.String(), StartsAt: clock.now().Format(time.RFC3339)})
	b.read(found("k9", "9999"))
	if w := b.work(c); w.Action != access.Put || !w.New {
		t.Errorf("there is %q to do", w.Action)
	}
	if countOf(b.events(c.ID), "access_code.deleted_external_to_seam") > 0 {
		t.Error("it was told as deleted by somebody else")
	}
}

// A lock that keeps time frames lets nobody in once that of before is over, however long the one is that it has refused.
func TestCodeWhoseExtensionWasRefusedIsNotSetAfterItsEnd(t *testing.T) {
	t.Parallel()
	for profile, want := range map[string]access.Status{"august": access.StatusUnset, "smartthings": access.StatusSet} {
		for when, late := range map[string]bool{"before its end": false, "after its end": true} {
			t.Run(profile+", refused "+when, func(t *testing.T) {
				t.Parallel()
				b, clock := timeBound(t, profile)
				end := clock.now().Add(2 * time.Hour)
				c := b.between("2580", clock.now(), end)
				w := b.work(c)
				b.begin(w)
				b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
				b.update(access.CodeChange{ID: c.ID.String(), EndsAt: end.Add(6 * time.Hour).Format(time.RFC3339)})
				w = b.work(c)
				b.begin(w)
				if late {
					clock.to(end)
				}
				b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedInvalid, Message: "too long"}})
				if !late {
					if got := b.code(c.ID); got.Status != access.StatusSet {
						t.Errorf("before its end it is %s", got.Status)
					}
					if w := b.look(); want == access.StatusUnset && (w.Due == nil || !w.Due.Equal(end)) {
						t.Errorf("it is due at %v, want %v", w.Due, end)
					}
					clock.to(end)
				}
				for range 2 {
					b.look()
				}
				if got := b.code(c.ID); got.Status != want || len(got.Errors) != 1 {
					t.Errorf("after its end it is %s with %v", got.Status, got.Errors)
				}
				if n := countOf(b.events(c.ID), "access_code.set_on_device"); n != 1 {
					t.Errorf("that it opens was told %d times", n)
				}
			})
		}
	}
}

// What is between what a code was and what it is to be is what it is when the last of that is refused.
func TestCodeIsWhatItsDeviceHasConfirmedLast(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	from := clock.now().Add(50 * time.Hour)
	c := b.between("2580", from, from.Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2581"})
	w = b.work(c)
	b.begin(w)
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2582"})
	b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
	b.refuse(c)
	clock.to(from)
	b.look()
	told := b.tales("access_code.set_on_device", "access_code.code_changed")
	if len(told) != 2 || told[0].Type != "access_code.code_changed" {
		t.Fatalf("told is %v", b.events(c.ID))
	}
	change, opens := b.fields(told[0]), b.fields(told[1])
	if change["from"].(map[string]any)["code"] != "2580" || change["to"].(map[string]any)["code"] != "2581" ||
		opens["code"] != "2581" {
		t.Error("told is another PIN than the device has")
	}
}

// A code on its way off is not on its way there, whatever else leaves the lock.
func TestCodeOnItsWayOffIsNotSetting(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	b.read(found("k9", "9999"), found("k8", "8888"))
	c := b.between("2580", clock.now(), clock.now().Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
	b.update(access.CodeChange{ID: c.ID.String(), PIN: "2581"})
	w = b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Failure: &access.Failure{Class: access.FailedFull, Message: "no room"}})
	clock.pass(time.Hour)
	b.look()
	b.read(found("k8", "8888"), found("k1", "2580"))
	if got := b.code(c.ID); got.Status != access.StatusRemoving {
		t.Errorf("it is %s", got.Status)
	}
}

// A code that nobody manages any more opens when its device says so.
func TestCodeThatIsGivenUpBeforeItsStartIsSet(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "august")
	from := clock.now().Add(50 * time.Hour)
	c := b.between("2580", from, from.Add(time.Hour))
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "k1", Confirmed: true})
	b.update(access.CodeChange{ID: c.ID.String(), Managed: new(false)})
	if got := b.unmanaged()[0]; got.Status != access.StatusSet {
		t.Errorf("it is %s", got.Status)
	}
	_, err := b.db.Pool.Exec(t.Context(), "update access_codes set status = 'unset' where access_code_id = $1", c.ID) // as it was left before
	b.must(err)
	f := found("k1", "2580")
	f.StartsAt, f.EndsAt = &from, new(from.Add(time.Hour))
	b.read(f)
	if got := b.unmanaged()[0]; got.Status != access.StatusSet {
		t.Errorf("read again it is %s", got.Status)
	}
}
