package seam_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/seam"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// awaitEvent waits for an event about a device.
func awaitEvent(t *testing.T, a *seam.Adapter, kind adapter.EventKind, device string) {
	t.Helper()
	deadline := time.After(testenv.Timeout(testenv.WaitTimeout))
	for {
		select {
		case e := <-a.Events():
			if e.Kind == kind && string(e.Device) == device {
				return
			}
		case <-deadline:
			t.Fatalf("no event of the kind %s", kind)
		}
	}
}

// Events arrive with a signed webhook, which a restart keeps and a loss repairs. A changed push is refused.
func TestWebhook(t *testing.T) {
	t.Parallel()
	up := apptest.SharedProcess(t, apptest.WithProfiles("august"))
	device := up.Device(t, "august")
	key, _ := up.NewKey(t, "downstream")
	base := judged(t, up.URL)
	receivers := make(chan http.HandlerFunc, 1)
	pushes := make(chan *http.Request, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		receive := <-receivers
		receivers <- receive
		r.Body = io.NopCloser(bytes.NewReader(body))
		receive(w, r)
		again := r.Clone(context.Background())
		again.Body = io.NopCloser(bytes.NewReader(append(body, ' ')))
		select {
		case pushes <- again:
		default:
		}
	}))
	t.Cleanup(server.Close)
	stored := &adaptertest.Secrets{}
	start := func() *seam.Adapter {
		a := seam.New(seam.Config{
			BaseURL:      base,
			APIKey:       key,
			PollInterval: time.Hour, // so that all events are pushes
			Secrets:      stored,
			PushURLs: func(context.Context) ([]string, error) {
				return []string{server.URL + "/vendors/account/secret", server.URL + "/vendors/account/former"}, nil
			},
		})
		select {
		case <-receivers:
		default:
		}
		receivers <- a.Receive
		a.Listen()
		t.Cleanup(func() { _ = a.Close() })
		return a
	}
	webhooks := func() (ids []string) {
		var out struct {
			Webhooks []struct {
				ID string `json:"webhook_id"`
			} `json:"webhooks"`
		}
		up.Post(t, "/webhooks/list", map[string]any{}, &out)
		for _, w := range out.Webhooks {
			ids = append(ids, w.ID)
		}
		return ids
	}
	up.Post(t, "/webhooks/create", map[string]any{"url": server.URL + "/vendors/account/former"}, nil)
	a := start()
	isStored := func() bool {
		data, err := stored.Load(t.Context(), adapter.SubscriptionSecret)
		return err == nil && len(data) > 0
	}
	testenv.Until(t, "the webhook", isStored)
	first := webhooks()
	if len(first) != 1 {
		t.Fatalf("the webhooks are %v: that of the former URL must be deleted", first)
	}
	body := map[string]any{"device_id": device, "name": "One", "code": "4839"}
	up.Post(t, "/access_codes/create", body, nil)
	awaitEvent(t, a, adapter.CodesChanged, device)

	w := httptest.NewRecorder()
	a.Receive(w, <-pushes)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("a changed push is answered with %d", w.Code)
	}

	_ = a.Close()
	a = start()
	up.Post(t, "/access_codes/create", map[string]any{"device_id": device, "name": "Two", "code": "5948"}, nil)
	awaitEvent(t, a, adapter.CodesChanged, device)
	if again := webhooks(); len(again) != 1 || again[0] != first[0] {
		t.Errorf("after a restart, the webhooks are %v", again)
	}
	data, err := stored.Load(t.Context(), adapter.SubscriptionSecret)
	if err != nil {
		t.Fatal(err)
	}
	var kept map[string]string
	if json.Unmarshal(data, &kept) != nil || kept["secret"] == "" || kept["id"] != first[0] {
		t.Error("the stored subscription is incomplete")
	}
}

func TestOfflineCodesAndAutoLock(t *testing.T) {
	t.Parallel()
	b := newBed(t, "igloohome")
	device := adapter.DeviceRef(b.device)
	hour := time.Now().Truncate(time.Hour).Add(2 * time.Hour)
	spec := adapter.OfflineSpec{Key: "k", Kind: adapter.OfflineHourly, StartsAt: hour, EndsAt: hour.Add(3 * time.Hour)}
	made, err := b.adapter.IssueCode(t.Context(), device, spec)
	if err != nil || made.PIN == "" || made.Ref == "" {
		t.Fatalf("IssueCode: ref %q, %v", made.Ref, err)
	}
	if again, err := b.adapter.IssueCode(t.Context(), device, spec); err != nil || again != made {
		t.Errorf("a repeated IssueCode gives another code: %v", err)
	}
	codes, err := b.adapter.Codes(t.Context(), device, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range codes.Codes {
		if c.Ref == made.Ref {
			t.Error("the offline code is listed")
		}
	}

	b = newBed(t, "august")
	device = adapter.DeviceRef(b.device)
	setting := adapter.AutoLock{Enabled: true, Delay: 30 * time.Second}
	if _, err := b.adapter.ConfigureAutoLock(t.Context(), device, setting); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "the auto-lock setting", func() bool {
		d, err := b.adapter.Device(t.Context(), device)
		return err == nil && d.AutoLock != nil && *d.AutoLock == setting
	})
}
