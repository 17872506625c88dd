package audit

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestAdmitPublic_BoundsEntriesOfDay(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	s := New(nil, Options{PublicEntries: 3, Now: func() time.Time { return now }})
	one, other := uuid.New(), uuid.New()
	admitted := func(workspace uuid.UUID) (n int) {
		for range 10 {
			if s.AdmitPublic(workspace) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		what      string
		workspace uuid.UUID
		later     time.Duration
		want      int
	}{
		{"first day", one, 0, 3},
		{"another workspace", other, 0, 3},
		{"the same day", one, 23 * time.Hour, 0},
		{"the next day", one, time.Hour, 3},
	} {
		now = now.Add(c.later)
		if n := admitted(c.workspace); n != c.want {
			t.Errorf("%s: %d entries, want %d", c.what, n, c.want)
		}
	}
}
