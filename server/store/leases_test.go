package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// A standby that is promoted may lack the last commits of the primary: the holder of a lease from one of them holds nothing
// once another has taken it.
func TestFenceIsNotGivenTwiceByADatabaseThatLostCommits(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]string{ // $1 is the fence of the lease before
		"the last lease":    "update leases set held_until = now(), fence = $1",
		"all of its leases": "delete from leases where fence > $1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, storetest.New(t))
			take := func() int64 {
				t.Helper()
				fence, err := db.TakeLease(
					t.Context(),
					dbsqlc.TakeLeaseParams{Key: "device:x", Holder: uuid.New(), Ttl: time.Minute},
				)
				if err != nil {
					t.Fatal(err)
				}
				return fence
			}
			first := take()
			if err := db.ReleaseLease(
				t.Context(),
				dbsqlc.ReleaseLeaseParams{Key: "device:x", Fence: first},
			); err != nil {
				t.Fatal(err)
			}
			lost := take()
			if _, err := db.Pool.Exec(t.Context(), lose, first); err != nil {
				t.Fatal(err)
			}
			if again := take(); again == lost || again == first {
				t.Errorf("fence %d was given twice", again)
			}
			held, err := db.CheckLease(t.Context(), dbsqlc.CheckLeaseParams{Key: "device:x", Fence: lost})
			if err != nil || held {
				t.Errorf("the lease that was lost is held: %t, %v", held, err)
			}
		})
	}
}
