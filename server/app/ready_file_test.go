package app_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Servers that start concurrently each get a valid key for their ready file, although each revokes earlier ones.
func TestReadyFile_ConcurrentStarts(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	const together = 6
	keys := make([]string, together)
	for range 5 { // each has keys to revoke
		var all sync.WaitGroup
		for i := range keys {
			all.Go(func() {
				var err error
				if keys[i], err = s.App.Sandbox.RenewKey(t.Context(), "ready-file"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	last, err := s.App.Sandbox.RenewKey(t.Context(), "ready-file")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if status := s.PostAs(t, key, "/devices/list", map[string]any{}, nil); status != http.StatusUnauthorized {
			t.Errorf("a renewed key is answered %d", status)
		}
	}
	if status := s.PostAs(t, last, "/devices/list", map[string]any{}, nil); status != http.StatusOK {
		t.Errorf("the last key is answered %d", status)
	}
}
