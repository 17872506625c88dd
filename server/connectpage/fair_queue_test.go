package connectpage_test

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// The bound on concurrent requests of an address also applies to pages.
func TestPagesAreShownInTurn(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	page, err := url.Parse(webview(t, s, map[string]any{}).URL)
	if err != nil {
		t.Fatal(err)
	}
	watch := s.Gate(t, "before update", "connect_webviews", "false")
	open := s.LockTable(t, "connect_webviews")
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var answered atomic.Int32
	const most = admission.DefaultSlots * 3 / 4
	for range 2 * most {
		all.Go(func() {
			req, err := http.NewRequestWithContext(
				ctx,
				http.MethodGet,
				s.App.URL+page.Path,
				nil,
			) // of one server, should there be more
			if err != nil {
				t.Error(err)
				return
			}
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
			}
			answered.Add(1)
		})
	}
	const shown = "OpenConnectWebview" // other requests may read webviews meanwhile
	watch.Await(most, shown)
	for answered.Load() == 0 { // until the first wait times out
		if n := watch.Waiting(shown); n > most {
			t.Fatalf("%d of one address are worked on at once", n)
		}
	}
	open()
}
