package webhook_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

func TestWebhook_ReceivesOnlyItsEventTypes(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	some, all := newSink(t, nil), newSink(t, nil)
	before := b.emit(b.p, "device.connected", "")
	wSome, wAll := b.hook(some.URL, "device.connected"), b.hook(all.URL)
	other := b.workspace("other")
	if _, err := b.access.Webhooks.CreateWebhook(t.Context(), other, some.URL, []string{"device.added"}); err != nil {
		t.Fatal(err)
	}
	connected, added := b.emit(b.p, "device.connected", ""), b.emit(b.p, "device.added", "")
	b.emit(other, "device.connected", "") // of another workspace
	b.until("all is delivered", b.is(wAll, 2, webhook.DeliveryDelivered))
	b.until("some is delivered", b.is(wSome, 1, webhook.DeliveryDelivered))
	if got := some.messages(); len(got) != 1 || got[0].id() != connected.String() {
		t.Errorf("%d messages, %v", len(got), got)
	}
	for _, m := range all.messages() {
		if m.id() != connected.String() && m.id() != added.String() {
			t.Errorf("received %s; %s precedes the webhook", m.id(), before)
		}
		m.verify(t, wAll.Secret)
	}
}

func TestRetry_KeepsIdentifierAndBytes(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n < 4 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	w := b.hook(s.URL)
	id := b.emit(b.p, "access_code.set_on_device", "1234")
	b.until("it is delivered", b.is(w, 1, webhook.DeliveryDelivered))
	got := s.messages()
	for _, m := range got {
		m.verify(t, w.Secret)
		if m.id() != id.String() || !bytes.Equal(m.body, got[0].body) ||
			!bytes.Contains(m.body, []byte(`"code":"1234"`)) {
			t.Errorf("%s %s", m.id(), m.body)
		}
	}
	attempts := b.attempts(w, id)
	if len(got) != 4 || len(attempts) != 4 || attempts[0].Status != 500 || attempts[0].Error == "" ||
		attempts[3].Status != 200 ||
		attempts[3].Error != "" ||
		attempts[3].Latency <= 0 {
		t.Errorf("%d messages, attempts %+v", len(got), attempts)
	}
}

func TestDelivery_FailedAfterLastAttemptAndReplayed(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n <= 8 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	w := b.hook(s.URL)
	id := b.emit(b.p, "device.connected", "")
	b.until("it is given up", b.is(w, 1, webhook.DeliveryFailed))
	if n := len(b.attempts(w, id)); n != 8 {
		t.Errorf("%d attempts", n)
	}
	if n := b.replay(w, webhook.DeliveryFilter{EventID: &id}, uuid.Nil); n != 1 {
		t.Fatalf("replayed %d", n)
	}
	b.until("it is delivered", b.is(w, 1, webhook.DeliveryDelivered))
	if got := s.messages(); len(got) != 9 || got[8].id() != id.String() || !bytes.Equal(got[8].body, got[0].body) {
		t.Errorf("%d messages", len(got))
	}
	if _, err := b.access.Webhooks.ReplayDeliveries(
		t.Context(),
		b.workspace("other"),
		w.ID,
		webhook.DeliveryFilter{},
		uuid.Nil,
	); err == nil {
		t.Error("another workspace can replay")
	}
}

func TestFailure_AnyStatusBut2xx(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	target := newSink(t, nil)
	for name, c := range map[string]struct {
		url    string
		answer func(http.ResponseWriter, *http.Request, int)
		says   string
	}{
		"redirect, which is not followed": {answer: func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
		}, says: "307"},
		"client error":   {answer: status(http.StatusNotFound), says: "404 Not Found."},
		"unknown status": {answer: status(520), says: "answered 520."},
		"broken answer": {answer: func(w http.ResponseWriter, _ *http.Request, _ int) {
			c, _, _ := http.NewResponseController(w).Hijack()
			io.WriteString(c, "HTTP/9 what\r\n\r\n")
			c.Close()
		}, says: "malformed"},
		"no listener":  {url: "http://127.0.0.1:1/", says: "refused"},
		"unknown name": {url: "http://nowhere.invalid/", says: "nowhere.invalid"},
		"no TLS":       {url: strings.Replace(target.URL, "http://", "https://", 1), says: "HTTPS"},
	} {
		url := c.url
		if url == "" {
			url = newSink(t, c.answer).URL
		}
		w := b.hook(url+"?token=hush", "device.connected")
		id := b.emit(b.p, "device.connected", "")
		b.until(name+" is given up", b.is(w, 1, webhook.DeliveryFailed))
		a := b.attempts(w, id)[0]
		if !strings.Contains(a.Error, c.says) || strings.Contains(a.Error, "hush") {
			t.Errorf("%s: %+v", name, a)
		}
		b.must(b.access.Webhooks.DeleteWebhook(t.Context(), b.p, w.ID.String()))
	}
	if n := len(target.messages()); n > 0 {
		t.Errorf("the redirect was followed %d times", n)
	}
}

func TestFailure_SlowResponse(t *testing.T) {
	t.Parallel()
	o := quick()
	o.Timeout = 200 * time.Millisecond
	b := start(t, o)
	s := newSink(t, func(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() })
	w := b.hook(s.URL)
	id := b.emit(b.p, "device.connected", "")
	b.until("it is given up", b.is(w, 1, webhook.DeliveryFailed))
	if a := b.attempts(w, id)[0]; a.Status != 0 || !strings.Contains(a.Error, "within 200ms") {
		t.Errorf("%+v", a)
	}
}

func TestExcerpt_IsBoundedAndRedacted(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		io.WriteString(w, "echo 73519284 "+r.Header.Get("svix-signature")+strings.Repeat("x", 1<<20))
	})
	w := b.hook(s.URL)
	id := b.emit(b.p, "access_code.set_on_device", "73519284")
	b.until("it is delivered", b.is(w, 1, webhook.DeliveryDelivered))
	a := b.attempts(w, id)[0]
	if len(a.Excerpt) != 1<<10 || !strings.HasPrefix(a.Excerpt, "echo *** ***x") {
		t.Errorf("%d bytes: %.40s", len(a.Excerpt), a.Excerpt)
	}
}

// Some events contain PINs in nested fields, such as the values before and after a change.
func TestExcerpt_RedactsNestedPINs(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, func(w http.ResponseWriter, _ *http.Request, _ int) { io.WriteString(w, "73519284 and 84629173") })
	w := b.hook(s.URL)
	id := b.emit(b.p, "access_code.changed",
		`{"changed_properties":[{"property":"code","from":"73519284","to":"84629173"}]}`)
	b.until("it is delivered", b.is(w, 1, webhook.DeliveryDelivered))
	if a := b.attempts(w, id)[0]; a.Excerpt != "*** and ***" {
		t.Errorf("%q", a.Excerpt)
	}
}

func TestDeletedWebhook_ReceivesNothing(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s, other := newSink(t, status(http.StatusInternalServerError)), newSink(t, nil)
	w := b.hook(s.URL)
	b.emit(b.p, "device.connected", "")
	b.until("an attempt was made", s.got(1))
	b.must(b.access.Webhooks.DeleteWebhook(t.Context(), b.p, w.ID.String()))
	kept := b.hook(other.URL)
	b.until("the requests in flight have ended", func() bool {
		var held bool
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select exists (select 1 from leases where key = $1 and held_until > now())", "endpoint:"+w.ID.String()).
				Scan(&held),
		)
		return !held
	})
	before := len(s.messages())
	b.emit(b.p, "device.connected", "")
	b.until("the other webhook has the event", b.is(kept, 1, webhook.DeliveryDelivered))
	if after := len(s.messages()); after != before {
		t.Errorf("%d messages after the deletion", after-before)
	}
}

// The lease is lost during a request, like after a crash of its holder. The response cannot be
// recorded.
func TestUnrecordedDelivery_KeepsIdentifier(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, func(_ http.ResponseWriter, r *http.Request, n int) {
		if n == 1 {
			if _, err := b.db.Pool.Exec(
				r.Context(),
				"update leases set fence = fence + 1, held_until = '-infinity' where key like 'endpoint:%'",
			); err != nil {
				t.Error(err)
			}
		}
	})
	w := b.hook(s.URL)
	id := b.emit(b.p, "device.connected", "")
	b.until("it is delivered", b.is(w, 1, webhook.DeliveryDelivered))
	got := s.messages()
	if len(got) != 2 || got[0].id() != id.String() || got[1].id() != id.String() ||
		!bytes.Equal(got[0].body, got[1].body) {
		t.Errorf("%d messages", len(got))
	}
	if n := len(b.attempts(w, id)); n != 1 {
		t.Errorf("%d attempts are recorded", n)
	}
}

func TestRestart_SendsInterruptedDeliveryAgain(t *testing.T) {
	t.Parallel()
	o := quick()
	b := start(t, o)
	s := newSink(t, func(_ http.ResponseWriter, r *http.Request, n int) {
		if n == 1 {
			<-r.Context().Done()
		}
	})
	w := b.hook(s.URL)
	id := b.emit(b.p, "device.connected", "")
	b.until("the first request hangs", s.got(1))
	if n := len(b.attempts(w, id)); n != 0 {
		t.Errorf("%d attempts are recorded", n)
	}
	b.stop(time.Millisecond)
	if n := len(b.attempts(w, id)); n != 0 {
		t.Errorf("an interruption counts as a failure of the endpoint: %d attempts are recorded", n)
	}
	b.engine(o)
	b.until("it is delivered", b.is(w, 1, webhook.DeliveryDelivered))
	if got := s.messages(); len(got) != 2 || got[0].id() != got[1].id() {
		t.Errorf("%d messages", len(got))
	}
}

func TestManyEvents_ArriveOnce(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	s := newSink(t, nil)
	w := b.hook(s.URL)
	b.emitAll(1200, "device.connected") // more than one batch
	sent := map[string]bool{}
	rows, err := b.db.Pool.Query(t.Context(), "select event_id from events where workspace_id = $1", b.p.WorkspaceID)
	b.must(err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	b.must(err)
	for _, id := range all {
		sent[id.String()] = true
	}
	b.until("all are delivered", b.is(w, len(sent), webhook.DeliveryDelivered))
	for _, m := range s.messages() {
		if !sent[m.id()] {
			t.Fatalf("%s is a duplicate or unknown", m.id())
		}
		delete(sent, m.id())
	}
	if len(sent) > 0 {
		t.Errorf("%d have not arrived", len(sent))
	}
}

// One transaction creates and locks a bounded number of deliveries, however many webhooks a
// workspace has.
func TestFanOut_ManyWebhooksInSeveralTransactions(t *testing.T) {
	t.Parallel()
	b := start(t, quick())
	_, err := b.db.Pool.Exec(
		t.Context(),
		`insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed, disabled_at)
		select gen_random_uuid(), $1, 'https://example.com', '{device.added}', '', now() from generate_series(1, 2100)`,
		b.p.WorkspaceID,
	)
	b.must(err)
	_, err = b.db.Pool.Exec(t.Context(), `insert into events (event_id, workspace_id, event_type, payload)
		select gen_random_uuid(), $1, 'device.added', '{}' from generate_series(1, 12)`, b.p.WorkspaceID)
	b.must(err)
	b.until("all are held", func() bool { return b.count("deliveries") == 12*2100 })
	if n := b.count("(select count(*) from deliveries group by xmin::text having count(*) > 20000) too_many"); n != 0 {
		t.Error("one transaction created all deliveries")
	}
}

func ids(ms []message) (out []uuid.UUID) {
	for _, m := range ms {
		out = append(out, uuid.MustParse(m.id()))
	}
	return out
}
