package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// offlineCode asks for a code of the next five hours.
func (b byHand) offlineCode() access.Code {
	b.Helper()
	c, _, err := b.access.CreateCode(b.Context(), b.p, access.NewCode{
		DeviceID: b.device,
		Offline:  true,
		StartsAt: time.Now().Format(time.RFC3339),
		EndsAt:   time.Now().Add(5 * time.Hour).Format(time.RFC3339),
	})
	b.must(err)
	return c
}

// issued says what the vendor has made of the wish for an offline code.
func (b byHand) issued(c access.Code, ref, pin string) {
	b.Helper()
	for _, w := range b.look().Issues {
		if w.ID == c.ID {
			b.must(b.access.RecordIssued(b.Context(), holder{}, b.id(), w, access.PutOutcome{Ref: ref, PIN: pin}))
			return
		}
	}
	b.Fatal("it is not to be made")
}

// A vendor may list its offline codes: one whose answer was lost is taken for a stranger's until it is told.
func TestOfflineCodeThatIsListedIsNoOthers(t *testing.T) {
	t.Parallel()
	b, clock := timeBound(t, "igloohome")
	c := b.offlineCode()
	b.read(found("k1", "123456"), found("k2", "2580"))
	b.issued(c, "k1", "123456")
	others := func() int { return len(b.unmanaged()) }
	if got := b.code(c.ID); got.Status != access.StatusSet && got.Status != access.StatusUnset || len(got.Errors) > 0 ||
		others() != 1 {
		t.Fatalf("it is %s with %v, beside %d codes of others", got.Status, got.Errors, others())
	}
	clock.pass(time.Minute)
	listed := found("k1", "123456")
	listed.Name = "as the vendor calls it"
	b.read(listed, found("k2", "2580"))
	if got := b.code(c.ID); len(got.Errors)+len(got.Warnings) > 0 || len(b.look().Issues) > 0 || others() != 1 {
		t.Errorf("listed, it has %v and %v, and %d are to be made", got.Errors, got.Warnings, len(b.look().Issues))
	}
}

// A vendor that makes its codes of their hours has one for two wishes. That is the matter of the second, and of no other code of the lock.
func TestOfflineCodeThatIsAnothersFailsByItself(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "igloohome"})
	first, second := b.offlineCode(), b.offlineCode()
	online := b.on("2580", "k9")
	stranger := b.offlineCode()
	b.read(found("k9", "2580"), found("k7", "7777"))
	b.issued(first, "k1", "123456")
	b.issued(second, "k1", "123456")
	b.issued(stranger, "k7", "654321") // what is listed so opens with another PIN
	for _, c := range []access.Code{second, stranger} {
		got := b.code(c.ID)
		if len(got.Errors) != 1 || got.Errors[0].Code != "failed_to_issue" ||
			!strings.Contains(got.Errors[0].Message, "another code") {
			t.Errorf("it is %s with %v", got.Status, got.Errors)
		}
	}
	for _, c := range []access.Code{first, online} {
		if got := b.code(c.ID); len(got.Errors) > 0 {
			t.Errorf("beside it there is %v", got.Errors)
		}
	}
	if w := b.look(); len(w.Issues) > 0 || len(b.unmanaged()) != 1 {
		t.Errorf("%d are to be made again, beside %d codes of others", len(w.Issues), len(b.unmanaged()))
	}
}
