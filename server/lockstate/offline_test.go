package lockstate

import (
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
		if len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_issue" ||
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
