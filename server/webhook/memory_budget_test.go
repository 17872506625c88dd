package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// A large event may wait long for memory. Afterwards, the current state of the webhook applies.
func TestLargeEvent_UsesCurrentWebhookAfterWait(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.New(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	keys, err := encryption.New(encryption.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	waker, err := worker.NewWaker(db)
	if err != nil {
		t.Fatal(err)
	}
	a := NewService(db, keys, waker, event.New(db, keys, waker), ServiceOptions{})
	p := domain.Principal{WorkspaceID: domain.NewID()}
	if err := db.InsertWorkspace(
		t.Context(),
		dbsqlc.InsertWorkspaceParams{
			WorkspaceID: p.WorkspaceID,
			Name:        "w",
			CompanyName: "c",
			IsSandbox:   true,
		},
	); err != nil {
		t.Fatal(err)
	}
	eventID := uuid.Must(uuid.NewV7())
	if err := db.InTx(t.Context(), func(tx store.Tx) error {
		_, err := tx.InsertEvent(t.Context(), dbsqlc.InsertEventParams{
			EventID:     eventID,
			WorkspaceID: p.WorkspaceID,
			EventType:   "device.connected",
			Payload:     []byte(`{"device_id":"d"}`),
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	set := func(sql string) func(*testing.T, Webhook) error {
		return func(t *testing.T, w Webhook) error {
			_, err := db.Pool.Exec(t.Context(), sql+" where webhook_id = $1", w.ID)
			return err
		}
	}
	for name, c := range map[string]struct {
		meanwhile func(*testing.T, Webhook) error
		sent      bool
	}{
		"unchanged": {func(*testing.T, Webhook) error { return nil }, true},
		"deleted":   {func(t *testing.T, w Webhook) error { return a.DeleteWebhook(t.Context(), p, w.ID.String()) }, false},
		"disabled":  {set("update webhooks set disabled_at = now()"), false},
		"paused":    {set("update webhooks set paused_until = now() + interval '1 hour'"), false},
		"rotated secret": {func(t *testing.T, w Webhook) error {
			_, _, err := a.RotateSecret(t.Context(), p, w.ID.String(), 0)
			return err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int32
			var body, signature string
			var at time.Time
			s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				content, _ := io.ReadAll(r.Body)
				body, signature, at = string(content), r.Header.Get("webhook-signature"), time.Now()
				sent.Add(1)
			}))
			defer s.Close()
			w, err := a.CreateWebhook(t.Context(), p, s.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			endpoint, err := a.GetEndpoint(t.Context(), w.ID)
			if err != nil {
				t.Fatal(err)
			}
			d := New(
				a,
				Options{
					AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
					PollInterval:  time.Nanosecond,
				},
			)
			free, err := d.memory.acquire(t.Context(), p.WorkspaceID, uuid.New(), maxSuspectMemory)
			if err != nil {
				t.Fatal(err)
			}
			result := make(chan answer, 1)
			go func() {
				result <- d.deliver(t.Context(), endpoint, Delivery{Event: event.Event{ID: eventID}, Size: 400_000, Unread: true})
			}()
			testenv.Until(t, "it waits", func() bool {
				d.memory.mu.Lock()
				defer d.memory.mu.Unlock()
				return d.memory.byWorkspace[p.WorkspaceID].users == 2
			})
			if err := c.meanwhile(t, w); err != nil {
				t.Fatal(err)
			}
			free()
			got := <-result
			if n := sent.Load() == 1; n != c.sent || got.withdrawn == c.sent {
				t.Fatalf("sent: %v, withdrawn: %v, %s", n, got.withdrawn, got.problem)
			}
			if !c.sent {
				return
			}
			now, err := a.GetWebhook(t.Context(), p, w.ID.String())
			if err != nil {
				t.Fatal(err)
			}
			signed := false
			for ago := range 3600 { // the time of the signature
				want, err := sign(eventID.String(), at.Add(-time.Duration(ago)*time.Second), []byte(body), now.Secret)
				signed = signed || err == nil && want == signature
			}
			if !signed {
				t.Error("the message is not signed with the webhook's secret")
			}
		})
	}
}

// A withdrawn delivery is not in flight, and its run sends nothing more.
func TestWithdrawnDelivery_EndsRun(t *testing.T) {
	t.Parallel()
	withdrawn, other := uuid.New(), uuid.New()
	p := &run{
		Deliverer:    &Deliverer{memory: newMemoryBudget()},
		inFlightByID: map[uuid.UUID]flight{withdrawn: {}, other: {}},
		inFlight:     2,
	}
	p.handleResult(t.Context(), answer{event: withdrawn, cut: true, withdrawn: true})
	if _, waits := p.inFlightByID[other]; !waits || len(p.inFlightByID) != 1 || p.canSend() || p.unread != nil ||
		len(p.pending) > 0 {
		t.Errorf("%d in flight, the run continues: %v, %v", len(p.inFlightByID), p.canSend(), p.unread)
	}
}
