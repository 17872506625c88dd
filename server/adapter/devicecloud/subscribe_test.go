package devicecloud_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
)

// direct handles requests without a network, whose deadlines would not follow the clock of synctest.
type direct struct{ http.HandlerFunc }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// Changes before the subscription are found by reading.
func TestSubscribe_SendsResync(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]string{
		"a vendor that knew " +
			"it": `{"webhooks":[{"webhook_id":"1","url":"https://here.example/push","events":[]}]}`,
		"one that did not": `{"webhooks":[]}`,
	} {
		a, _ := vendor(t, says(http.StatusOK, known))
		if err := a.Subscribe(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = a.Close()
		if e := <-a.Events(); e.Kind != adapter.Resync {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// A webhook that the vendor has dropped or disabled is recreated, and a Resync is sent. A vendor that does not list
// webhooks gets only one request.
func TestDroppedWebhookIsRecreated(t *testing.T) {
	t.Parallel()
	const (
		none     = `{"webhooks":[]}`
		ours     = `{"webhooks":[{"webhook_id":"1","url":"https://here.example/v/s","events":["x"]}]}`
		disabled = `{"webhooks":[{"webhook_id":"1","url":"https://here.example/v/s","status":"disabled","events":["x"]}]}`
		moved    = `{"webhooks":[{"webhook_id":"2","url":"https://there.example/v/s","events":["x"]}]}`
		unlisted = `{}`
	)
	for _, c := range []struct {
		name  string
		lists []string // the lists that the vendor returns; the last one repeats
		posts int
	}{
		{"is kept", []string{none, ours}, 1},
		{"is dropped", []string{none, ours, none, ours}, 2},
		{"is disabled", []string{none, ours, disabled, ours}, 2},
		{"is not listed for a while", []string{none, ours, unlisted, ours}, 1},
		{"is moved by another server", []string{none, ours, moved}, 1},
		{"is never listed", []string{none}, 1},
		{"cannot be listed", []string{unlisted}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				posts, lists := 0, c.lists
				a := devicecloud.New(devicecloud.Config{
					BaseURL: "http://cloud.example",
					PushURL: "https://here.example/v/s",
					HTTP: &http.Client{Transport: direct{func(w http.ResponseWriter, r *http.Request) {
						if r.Method == http.MethodPost {
							posts++
							return
						}
						_, _ = io.WriteString(w, lists[0])
						lists = lists[min(1, len(lists)-1):]
					}}},
				})
				resyncs := 0
				told := make(chan struct{})
				go func() {
					defer close(told)
					for e := range a.Events() {
						if e.Kind == adapter.Resync {
							resyncs++
						}
					}
				}()
				ended := make(chan struct{})
				go func() { defer close(ended); a.StaySubscribed(t.Context()) }()
				time.Sleep(2 * time.Hour)
				_ = a.Close()
				<-ended
				<-told
				if posts != c.posts || resyncs != c.posts {
					t.Errorf("%d creations and %d resyncs, want %d", posts, resyncs, c.posts)
				}
			})
		})
	}
}

// If the vendor rejects the subscription, one Resync is sent, and the subscription is retried.
func TestRejectedSubscriptionIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		a := devicecloud.New(devicecloud.Config{
			BaseURL: "http://cloud.example", PushURL: "https://here.example/v/s",
			HTTP: &http.Client{Transport: direct{func(w http.ResponseWriter,
				r *http.Request,
			) {
				asked++
				w.WriteHeader(http.StatusUnauthorized)
			}}},
		})
		ended := make(chan struct{})
		go func() { defer close(ended); a.StaySubscribed(t.Context()) }()
		time.Sleep(24 * time.Hour)
		_ = a.Close()
		<-ended
		var told []adapter.EventKind
		for e := range a.Events() {
			told = append(told, e.Kind)
		}
		if len(told) != 1 || told[0] != adapter.Resync || asked < 200 || asked > 400 {
			t.Errorf("events %v, %d requests", told, asked)
		}
	})
}

// A list of webhooks with identifiers of dots must not lead to the deletion of other webhooks.
func TestWebhookOfDotsIsNotDeleted(t *testing.T) {
	t.Parallel()
	var deleted []string
	a, _ := vendor(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted = append(deleted, r.URL.Path)
		}
		_, _ = io.WriteString(
			w,
			`{"webhooks":[{"webhook_id":"..","url":"https://there.example/push"},{"webhook_id":"7","url":"https://there.example/push"}]}`,
		)
	})
	if err := a.Subscribe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(deleted, " "); got != "/webhooks/7" {
		t.Errorf("deleted: %s", got)
	}
}
