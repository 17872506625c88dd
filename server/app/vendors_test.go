package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// A vendor's event is accepted without a database query, so that a flood of events delays no other request. The server
// processes it once the database answers.
func TestVendorEvents_AcceptedWithoutDatabase(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	told := make(chan string, 10)
	var lists atomic.Int32
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var wish struct {
			URL string `json:"url"`
		}
		if r.URL.Path == "/webhooks" && r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&wish) == nil {
			told <- wish.URL
		}
		if r.URL.Path == "/locks" {
			lists.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"locks":[],"webhooks":[]}`)
	}))
	t.Cleanup(cloud.Close)
	_, err := s.App.Access.Accounts.ConnectAccount(
		t.Context(),
		account.NewAccount{
			WorkspaceID: uuid.MustParse(s.WorkspaceID),
			Adapter:     "devicecloud",
			DisplayName: "Vendor",
			Config:      fmt.Appendf(nil, `{"base_url":%q,"token":"t"}`, cloud.URL),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	pushes := <-told
	push := func() int {
		t.Helper()
		req, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			pushes,
			strings.NewReader(
				`{"event_id":"1","event_type":"access_code.updated","device_id":"d1","access_code_id":"c"}`,
			),
		)
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Timeout: testenv.Timeout(testenv.WaitTimeout)}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	apptest.Until(t, "its locks are listed", func() bool { return lists.Load() > 0 })
	open := s.LockTable(t, "connected_accounts")
	before := lists.Load()
	for range 3 {
		if status := push(); status != http.StatusNoContent {
			t.Errorf("an event is answered %d", status)
		}
	}
	open()
	apptest.Until(t, "the devices are listed again", func() bool { return lists.Load() > before })
}
