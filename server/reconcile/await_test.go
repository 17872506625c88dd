package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

func TestWhoWaitsForAnAttemptIsTold(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{AttemptEvery: time.Hour}}) // nobody looks
	_, a := b.create("2580")
	got, err := b.access.AwaitAttempt(t.Context(), b.p, a, 50*time.Second)
	b.must(err)
	if got.Status != access.Succeeded {
		t.Errorf("the attempt is %s", got.Status)
	}
	if got, err = b.access.AwaitAttempt(t.Context(), b.p, a, time.Hour); err != nil || got.Status != access.Succeeded {
		t.Errorf("one that has ended: %s, %v", got.Status, err)
	}

	// Another instance sees it by looking.
	other := access.New(b.db, b.keys, b.waker, access.Options{AttemptEvery: 10 * time.Millisecond})
	_, a = b.create("2581")
	if got, err = other.AwaitAttempt(t.Context(), b.p, a, 50*time.Second); err != nil ||
		got.Status != access.Succeeded {
		t.Errorf("in another instance: %s, %v", got.Status, err)
	}

	// Who asked may hang up, and nobody waits for ever.
	b.control("POST", "offline", nil)
	b.until("the device is offline", func() bool {
		d, err := b.access.GetDevice(t.Context(), b.p, b.device, "")
		b.must(err)
		return !d.Online
	})
	_, a = b.create("2582")
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	if _, err := b.access.AwaitAttempt(ctx, b.p, a, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("who hung up: %v", err)
	}
	if got, err = b.access.AwaitAttempt(t.Context(), b.p, a, time.Millisecond); err != nil ||
		got.Status != access.Pending {
		t.Errorf("after a while: %s, %v", got.Status, err)
	}
	stranger := access.Principal{WorkspaceID: b.account}
	if _, err := b.access.AwaitAttempt(t.Context(), stranger, a, time.Hour); err == nil {
		t.Error("a stranger waits for it")
	}
}
