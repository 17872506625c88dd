package webhook_test

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

func (b *bed) rotate(w webhook.Webhook, overlap time.Duration) webhook.Webhook {
	b.Helper()
	rotated, _, err := b.access.Webhooks.RotateSecret(b.Context(), b.p, w.ID.String(), overlap)
	b.must(err)
	return rotated
}

// signatures returns the signatures in the header that Svix's receivers read.
func (m message) signatures() []string { return strings.Fields(m.header.Get("svix-signature")) }

// with returns the message as seen by a receiver that checks one signature.
func (m message) with(signature string) message {
	header := m.header.Clone()
	for _, name := range []string{"webhook-signature", "svix-signature"} {
		header.Set(name, signature)
	}
	return message{header, m.body}
}

func TestRotation_BothSecretsSignDuringOverlap(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, nil)
	old := b.hook(s.URL)
	rotated := b.rotate(old, time.Hour)
	if rotated.Secret == old.Secret || !strings.HasPrefix(rotated.Secret, "whsec_") {
		t.Fatal("the secret is the old one or empty")
	}
	b.emit(b.p, "device.connected", "")
	b.until("the message arrives", s.got(1))
	m := s.messages()[0]
	if n := len(m.signatures()); n != 2 || m.header.Get("webhook-signature") != m.header.Get("svix-signature") {
		t.Fatalf("%d signatures", n)
	}
	m.with(m.signatures()[0]).verify(t, rotated.Secret)
	m.with(m.signatures()[1]).verify(t, old.Secret)
	if read, err := b.access.Webhooks.GetWebhook(t.Context(), b.p, old.ID.String()); err != nil ||
		read.Secret != rotated.Secret {
		t.Errorf("the API returns another secret, %v", err)
	}
	var sealed []byte
	b.must(b.db.Pool.QueryRow(t.Context(), "select old_secret_sealed from webhooks").Scan(&sealed))
	if len(sealed) == 0 || bytes.Contains(sealed, []byte("whsec_")) {
		t.Error("the old secret is stored unencrypted or not at all")
	}
	if _, err := b.db.Pool.Exec(t.Context(), "update webhooks set old_secret_until = now()"); err != nil {
		t.Fatal(err)
	}
	b.until("only the new secret signs", func() bool {
		b.emit(b.p, "device.connected", "")
		all := s.messages()
		return all[len(all)-1].verifies(rotated.Secret)
	})
}

func TestRotation_SeenByRunningWork(t *testing.T) {
	t.Parallel()
	o := quick()
	o.Timeout = time.Minute // the run does not end before the rotation is seen
	b := start(t, o)
	released, release := gate(t)
	s := newSink(t, func(_ http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			<-released
		}
	})
	defer release()
	old := b.hook(s.URL)
	b.emit(b.p, "device.connected", "")
	b.until("the first hangs", s.got(1))
	rotated := b.rotate(old, 0)
	b.until("a message is signed with the new secret alone", func() bool {
		b.emit(b.p, "device.connected", "")
		all := s.messages()
		last := all[len(all)-1]
		return len(last.signatures()) == 1 && last.verifies(rotated.Secret)
	})
}

// The same for a run whose deliveries are all in memory.
func TestRotation_SeenBySlowEndpointWithBacklog(t *testing.T) {
	t.Parallel()
	o := quick()
	o.Timeout, o.PollInterval = time.Minute, time.Millisecond // read again after each response
	b := start(t, o)
	released, release := gate(t)
	s := newSink(t, func(http.ResponseWriter, *http.Request, int) { <-released })
	defer release()
	old := b.hook(s.URL)
	const events = 40
	b.emitAll(events, "device.connected")
	b.until("the first ones hang", s.got(2))
	rotated := b.rotate(old, 0)
	release()
	b.until("all are delivered", b.is(old, events, webhook.DeliveryDelivered))
	for n, m := range s.messages() {
		if want := n >= 2; want != (len(m.signatures()) == 1 && m.verifies(rotated.Secret)) {
			t.Errorf("message %d: %d signatures", n, len(m.signatures()))
		}
	}
}

func TestRotation_RefusedDuringOverlap(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	w := b.hook("https://example.com/")
	b.rotate(w, time.Hour)
	_, _, err := b.access.Webhooks.RotateSecret(t.Context(), b.p, w.ID.String(), time.Hour)
	if e, ok := errors.AsType[*domain.Error](err); !ok || e.Kind != domain.Conflict ||
		!strings.Contains(e.Message, "until 20") {
		t.Errorf("%v", err)
	}
	b.rotate(w, 0)
	e, err := b.access.Webhooks.GetEndpoint(t.Context(), w.ID)
	if err != nil || e.OldSecret != "" {
		t.Errorf("an old secret remains, %v", err)
	}
	for name, err := range map[string]error{
		"a stranger": second(b.access.Webhooks.RotateSecret(t.Context(), b.workspace("other"), w.ID.String(), 0)),
		"no overlap": second(b.access.Webhooks.RotateSecret(t.Context(), b.p, w.ID.String(), -1)), "for ever": second(b.access.Webhooks.RotateSecret(t.Context(), b.p, w.ID.String(), 365*24*time.Hour)),
		"nothing": second(b.access.Webhooks.RotateSecret(t.Context(), b.p, "x", 0)),
	} {
		if err == nil {
			t.Errorf("%s rotates", name)
		}
	}
}

func second(_ webhook.Webhook, _ *time.Time, err error) error { return err }

func TestRotation_SeenByRunningReplay(t *testing.T) {
	t.Parallel()
	o := quick()
	o.Timeout = time.Minute // the run does not end before the rotation is seen
	b := start(t, o)
	released, release := gate(t)
	s := newSink(t, func(_ http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			<-released
		}
	})
	defer release()
	old := b.hook(s.URL)
	const n = 40
	b.delivered(old, n, webhook.DeliveryFailed)
	if got := b.replay(old, webhook.DeliveryFilter{}, uuid.Nil); got != n {
		t.Fatalf("replayed %d", got)
	}
	b.until("the replay has begun, and its first request hangs", s.got(1))
	rotated := b.rotate(old, time.Hour)
	both := func(m message) bool { return len(m.signatures()) == 2 }
	b.until("a message of the replay has both signatures", func() bool {
		b.replay(old, webhook.DeliveryFilter{States: []webhook.DeliveryState{webhook.DeliveryDelivered}}, uuid.Nil)
		return slices.ContainsFunc(s.messages(), both)
	})
	release()
	b.until("all are delivered", b.is(old, n, webhook.DeliveryDelivered))
	seen := map[string]bool{}
	for _, m := range s.messages() {
		seen[m.id()] = true
		signatures := m.signatures()
		if both(m) {
			m.with(signatures[0]).verify(t, rotated.Secret)
		}
		m.with(signatures[len(signatures)-1]).verify(t, old.Secret) // receivers with the old secret miss nothing
	}
	if len(seen) != n {
		t.Errorf("%d events arrived", len(seen))
	}
}
