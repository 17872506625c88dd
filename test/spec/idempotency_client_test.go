package spec_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// The provider's client retries behind a proxy that drops responses. It creates each object once and gets the response.
func TestIdempotency_ClientRetriesLostResponse(t *testing.T) {
	t.Parallel()
	s, db := keyedWorkspace(t)
	server, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(server)
	var cut atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/access_codes/create" && cut.Add(1) <= 2 {
			proxy.ServeHTTP(discarding{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	client, err := api.New(api.Config{Endpoint: front.URL, Credential: s.APIKey})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Call[api.WorkspaceResponse](
		t.Context(),
		client.GetWorkspace,
		api.EmptyRequest{},
	); err != nil { // tells the client what the server supports
		t.Fatal(err)
	}
	made, err := api.Call[api.AccessCodeCreatedResponse](
		t.Context(),
		client.CreateAccessCode,
		api.CreateAccessCodeRequest{DeviceID: s.Device(t, "august"), Name: "Planned"},
	)
	if err != nil {
		t.Fatal(err)
	}
	if n := codesNamed(t, s, db, "Planned"); n != 1 || cut.Load() != 3 {
		t.Errorf("%d codes, asked for %d times", n, cut.Load())
	}
	if n := count(
		t,
		db,
		"select count(*) from access_codes where access_code_id::text = $1",
		made.AccessCode.AccessCodeID,
	); n != 1 {
		t.Error("the answer names another code")
	}
}
