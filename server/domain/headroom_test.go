package domain

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// A flood is not counted for each resource, and at the limit only every few seconds.
func TestHeadroom_CountsRarely(t *testing.T) {
	t.Parallel()
	const most = 10_000
	var u Headroom
	now, workspace := time.Unix(0, 0), uuid.New()
	made, counts := 0, 0
	ask := func() {
		taken, known := u.Take(workspace, now)
		if !known {
			counts++
			u.SetCount(workspace, most-made, now)
			taken = made < most
		}
		if taken {
			made++
		}
	}
	for range 10 * most {
		ask()
	}
	if made != most || counts > 100 {
		t.Errorf("created %d with %d counts", made, counts)
	}
	now = now.Add(allowanceFor + 1)
	made -= 100 // 100 have ended
	counts = 0
	for range most {
		ask()
	}
	if made != most || counts > 50 {
		t.Errorf("later created %d with %d counts", made, counts)
	}
	for range 2 * allowancesKept {
		now = now.Add(time.Second)
		u.SetCount(uuid.New(), 0, now)
	}
	if len(u.room) > allowancesKept {
		t.Errorf("%d workspaces are cached", len(u.room))
	}
}
