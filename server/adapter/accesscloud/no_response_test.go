package accesscloud_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
)

// Without the lease of the account, nothing is sent.
func TestNothingIsSentWithoutTheLease(t *testing.T) {
	t.Parallel()
	b := start(t)
	lost := errors.New("another server has the lease")
	before, err := b.ReadSystem(t.Context(), b.system)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.PutUser(adapter.WithLeaseCheck(t.Context(), func() error { return lost }), b.system,
		adapter.AccessUser{FullName: "Jane Doe"})
	if !errors.Is(err, lost) || adapter.ClassOf(err) != adapter.Transient {
		t.Errorf("put: %v", err)
	}
	if found, err := b.ReadSystem(t.Context(), b.system); err != nil || len(found.Users) != len(before.Users) {
		t.Errorf("got %d users, want %d: %v", len(found.Users), len(before.Users), err)
	}
}

// A request that was never sent has no effect; one that was sent without a response may have.
func TestWriteWithoutResponse(t *testing.T) {
	t.Parallel()
	hangsUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request,
	) {
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(hangsUp.Close)
	away := httptest.NewServer(nil)
	away.Close()
	for url, want := range map[string]adapter.Class{hangsUp.URL: adapter.Unconfirmed, away.URL: adapter.GatewayDown} {
		a := accesscloud.New(accesscloud.Config{BaseURL: url})
		if _, err := a.PutUser(t.Context(), "system",
			adapter.AccessUser{FullName: "Jane Doe"}); adapter.ClassOf(err) != want {
			t.Errorf("put: %v, want %s", err, want)
		}
		if err := a.DeleteUser(t.Context(), "system", "user"); adapter.ClassOf(err) != want {
			t.Errorf("delete: %v, want %s", err, want)
		}
		if _, err := a.Systems(t.Context()); adapter.ClassOf(err) != adapter.GatewayDown {
			t.Errorf("list: %v", err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Waiting for other large responses says nothing about the vendor.
func TestAnswerThatThereIsNoRoomFor(t *testing.T) {
	t.Parallel()
	a := accesscloud.New(accesscloud.Config{BaseURL: "http://vendor.example", HTTP: adaptertest.Saturated()})
	if _, err := a.ReadSystem(
		t.Context(),
		"system",
	); !errors.Is(err, adapter.ErrSaturated) ||
		adapter.AsError(err) != nil {
		t.Errorf("look: %v", err)
	}
	if _, err := a.PutUser(t.Context(), "system",
		adapter.AccessUser{FullName: "Jane Doe"}); adapter.ClassOf(err) != adapter.Unconfirmed {
		t.Errorf("a sent write may have taken effect: %v", err)
	}
}
