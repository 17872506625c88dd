package lockstate

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// offlineCode requests a code for the next five hours.
func (b *bed) offlineCode() view {
	b.Helper()
	c, _, err := b.add(Code{StartsAt: new(b.now()), EndsAt: new(b.now().Add(5 * time.Hour)), Offline: OfflineHourly})
	b.must(err)
	return c
}

// issued sets what the vendor returns for an offline code.
func (b *bed) issued(c view, ref string, pin PIN) {
	b.Helper()
	for _, w := range b.look().Issues {
		if w.Code == c.ID {
			b.end(&w, Outcome{Ref: ref, PIN: pin})
			return
		}
	}
	b.Fatal("the code is not due")
}

// A vendor may list its offline codes. One whose response was lost counts as unmanaged until the
// response arrives.
func TestOfflineCode_ListedBeforeResponse(t *testing.T) {
	t.Parallel()
	b := newBed(t, "igloohome")
	c := b.offlineCode()
	b.read(found("k1", "123456"), found("k2", "2580"))
	b.issued(c, "k1", "123456")
	others := func() int { return len(b.unmanaged()) }
	if got := b.code(c.ID); got.Status != StatusSet && got.Status != StatusUnset || len(got.Errors) > 0 ||
		others() != 1 {
		t.Fatalf("status %s, errors %v, %d unmanaged codes", got.Status, got.Errors, others())
	}
	b.pass(time.Minute)
	listed := found("k1", "123456")
	listed.Name = "as the vendor calls it"
	b.read(listed, found("k2", "2580"))
	if got := b.code(c.ID); len(got.Errors)+len(got.Warnings) > 0 || len(b.look().Issues) > 0 || others() != 1 {
		t.Errorf("listed: errors %v, warnings %v, %d codes due", got.Errors, got.Warnings, len(b.look().Issues))
	}
}

// A vendor that derives codes from their hours returns the same code for two requests. Only the
// second one fails.
func TestOfflineCode_DuplicateFailsAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t, "igloohome")
	first, second := b.offlineCode(), b.offlineCode()
	online := b.on("2580", "k9")
	stranger := b.offlineCode()
	b.read(found("k9", "2580"), found("k7", "7777"))
	b.issued(first, "k1", "123456")
	b.issued(second, "k1", "123456")
	b.issued(stranger, "k7", "654321") // the listed one has another PIN
	for _, c := range []view{second, stranger} {
		got := b.code(c.ID)
		if !got.hasError("failed_to_issue") ||
			!strings.Contains(got.Errors[0].Message, "another code") {
			t.Errorf("status %s, errors %v", got.Status, got.Errors)
		}
	}
	for _, c := range []view{first, online} {
		if got := b.code(c.ID); len(got.Errors) > 0 {
			t.Errorf("other codes: %v", got.Errors)
		}
	}
	if w := b.look(); len(w.Issues) > 0 || len(b.unmanaged()) != 1 {
		t.Errorf("%d codes due, %d unmanaged codes", len(w.Issues), len(b.unmanaged()))
	}
}

func TestOfflineCode_Issuance(t *testing.T) {
	t.Parallel()
	b := newBed(t, "igloohome")
	b.timeouts.DelayAfter = time.Minute
	c, a, err := b.add(Code{
		StartsAt: new(b.now().Add(2 * time.Hour)),
		EndsAt:   new(b.now().Add(5 * time.Hour)),
		Offline:  OfflineHourly,
	})
	b.must(err)
	issue := func() *Operation {
		t.Helper()
		p := b.look()
		if len(p.Issues) != 1 || p.Issues[0].Offline != OfflineHourly || len(p.Operations) > 0 {
			t.Fatalf("%d codes to issue, operations %v", len(p.Issues), p.Operations)
		}
		return &p.Issues[0]
	}
	op := issue()
	if !b.started(op) {
		t.Error("the code is not wanted")
	}
	b.end(op, Outcome{Failure: &Failure{Class: FailedForNow, Message: "busy"}})
	if p := b.look(); len(p.Issues) > 0 || p.Deadline == nil || p.Deadline.After(b.now().Add(time.Second)) {
		t.Errorf("after a failure: %d codes to issue, next look at %v", len(p.Issues), p.Deadline)
	}
	b.pass(b.timeouts.DelayAfter)
	b.look()
	if got := b.code(c.ID); !got.hasWarning(WarnDelayIssuing) {
		t.Errorf("warnings %v", got.Warnings)
	}
	op = issue()
	b.end(op, Outcome{Ref: "o1", PIN: "123456"})
	b.end(op, Outcome{Ref: "o2", PIN: "654321"}) // a repeated answer
	got := b.code(c.ID)
	if got.PIN != "123456" || got.Ref != "o1" || got.Status != StatusUnset || len(got.Errors)+len(got.Warnings) > 0 {
		t.Errorf("status %s at %q, errors %v, warnings %v", got.Status, got.Ref, got.Errors, got.Warnings)
	}
	if b.started(op) || b.attempt(a).Status != Succeeded {
		t.Errorf("attempt %s", b.attempt(a).Status)
	}
	if p := b.look(); p.Deadline == nil || !p.Deadline.Equal(*c.StartsAt) {
		t.Errorf("next look at %v, want %v", p.Deadline, c.StartsAt)
	}
	b.to(*c.StartsAt)
	if p := b.look(); p.Deadline == nil || !p.Deadline.Equal(*c.EndsAt) || b.code(c.ID).Status != StatusSet {
		t.Errorf("status %s, next look at %v", b.code(c.ID).Status, p.Deadline)
	}
	want := []string{
		"access_code.created",
		MutationsRequested,
		"access_code." + WarnDelayIssuing,
		"access_code.issued",
		"access_code.set_on_device",
	}
	if events := b.events(c.ID); !slices.Equal(events, want) {
		t.Errorf("events %v", events)
	}
	b.to(*c.EndsAt)
	if b.look(); b.exists(c.ID) {
		t.Error("the code still exists after its end")
	}
}

func TestOfflineCode_RefusedIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := newBed(t, "igloohome")
	c := b.offlineCode()
	b.end(&b.look().Issues[0], Outcome{Failure: &Failure{Class: FailedInvalid, Message: "too long"}})
	p := b.look()
	if len(p.Issues) > 0 || p.Deadline == nil || !p.Deadline.Equal(*c.EndsAt) {
		t.Errorf("%d codes to issue, next look at %v", len(p.Issues), p.Deadline)
	}
	if got := b.told("access_code.failed_to_issue"); len(got) != 1 {
		t.Errorf("events %v", got)
	}
}

// A vendor answers a repeated request with the same code, and need not have references.
func TestOfflineCode_IssuedAgain(t *testing.T) {
	t.Parallel()
	for name, ref := range map[string]string{"with a reference": "o1", "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "igloohome")
			c := b.offlineCode()
			b.create("2580") // has no reference either
			b.issued(c, ref, "123456")
			b.away()
			b.issued(c, ref, "123456")
			b.look()
			if got := b.code(c.ID); got.Status != StatusSet || got.PIN != "123456" || len(got.Errors) > 0 {
				t.Errorf("status %s, errors %v", got.Status, got.Errors)
			}
			if got := b.told("access_code.issued"); len(got) != 1 {
				t.Errorf("%d events", len(got))
			}
		})
	}
}
