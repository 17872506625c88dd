package accesscloud_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

func TestUnlockEntranceAndDeleteGroup(t *testing.T) {
	t.Parallel()
	b := start(t)
	was := b.look()
	door, group := was.Entrances[0].Ref, was.Groups[0].Ref
	system := "systems/" + string(b.system)
	if err := b.UnlockEntrance(t.Context(), b.system, door); err != nil {
		t.Errorf("unlock: %v", err)
	}
	fails(t, "unlock no entrance", b.UnlockEntrance(t.Context(), b.system, "none"), adapter.NotFound)
	fails(t, "unlock a parent", b.UnlockEntrance(t.Context(), b.system, ".."), adapter.NotSupported)
	fails(t, "delete a parent", b.DeleteGroup(t.Context(), b.system, ".."), adapter.NotSupported)
	b.control(http.MethodPut, system+"/faults", `{"refuse_unlocks":true,"refuse_group_deletions":true}`)
	fails(t, "a blocked entrance", b.UnlockEntrance(t.Context(), b.system, door), adapter.Invalid)
	fails(t, "a fixed group", b.DeleteGroup(t.Context(), b.system, group), adapter.NotSupported)
	b.control(http.MethodPut, system+"/faults", `{}`)
	for range 2 { // deleting an absent group is not an error
		if err := b.DeleteGroup(t.Context(), b.system, group); err != nil {
			t.Errorf("delete a group: %v", err)
		}
	}
	if got := b.look().Groups; len(got) != len(was.Groups)-1 {
		t.Errorf("%d groups after the deletion", len(got))
	}
	b.control(http.MethodPost, system+"/offline", "")
	fails(t, "offline", b.UnlockEntrance(t.Context(), b.system, door), adapter.Offline)
	b.control(http.MethodPost, system+"/online", "")
	b.cut.Store(true)
	fails(t, "a lost response", b.UnlockEntrance(t.Context(), b.system, door), adapter.Unconfirmed)
}

// Only a response that excludes that the entrance opened may be retried.
func TestUnlockEntrance_UnclearResponses(t *testing.T) {
	t.Parallel()
	for status, class := range map[int]adapter.Class{
		http.StatusInternalServerError: adapter.Unconfirmed,
		http.StatusBadGateway:          adapter.Unconfirmed,
		http.StatusGatewayTimeout:      adapter.Unconfirmed,
		http.StatusServiceUnavailable:  adapter.Transient,
		http.StatusTooManyRequests:     adapter.Transient,
		http.StatusNotFound:            adapter.Transient, // of a proxy
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			a := vendor(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			fails(t, "unlock", a.UnlockEntrance(t.Context(), "1", "2"), class)
		})
	}
}
