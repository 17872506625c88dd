package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

func TestAwaitAttempt(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august", access: access.Options{AttemptEvery: time.Hour}}) // no polling
	_, a := b.create("2580")
	got, err := b.access.AwaitAttempt(t.Context(), b.p, a, 50*time.Second)
	b.must(err)
	if got.Status != access.Succeeded {
		t.Errorf("attempt status %s", got.Status)
	}
	if got, err = b.access.AwaitAttempt(t.Context(), b.p, a, time.Hour); err != nil || got.Status != access.Succeeded {
		t.Errorf("finished attempt: %s, %v", got.Status, err)
	}

	// Another instance notices by polling.
	other := access.New(b.db, b.keys, b.waker, access.Options{AttemptEvery: 10 * time.Millisecond})
	_, a = b.create("2581")
	if got, err = other.AwaitAttempt(t.Context(), b.p, a, 50*time.Second); err != nil ||
		got.Status != access.Succeeded {
		t.Errorf("in another instance: %s, %v", got.Status, err)
	}

	// The caller may cancel, and no wait is endless.
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
		t.Errorf("canceled wait: %v", err)
	}
	if got, err = b.access.AwaitAttempt(t.Context(), b.p, a, time.Millisecond); err != nil ||
		got.Status != access.Pending {
		t.Errorf("after the timeout: %s, %v", got.Status, err)
	}
	stranger := access.Principal{WorkspaceID: b.account}
	if _, err := b.access.AwaitAttempt(t.Context(), stranger, a, time.Hour); err == nil {
		t.Error("another workspace can wait for the attempt")
	}
}
