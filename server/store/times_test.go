package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// In the zone of a host east of UTC the last day of the year 9999 ends in the year 10000, which no answer can be written with.
// On a host that is in UTC itself, its zone still is another one to Go.
func TestTimesOfAllShapesAreReadInUTC(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), storetest.New(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)
	for name, pool := range map[string]*pgxpool.Pool{"pool": db.Pool, "separate": db.sidePool} {
		var one time.Time
		var some, none *time.Time
		var many []time.Time
		var anything any
		err := pool.QueryRow(t.Context(), "select $1::timestamptz, $1::timestamptz, null::timestamptz, array[$1::timestamptz, $2::timestamptz], $1::timestamptz",
			last, &last).
			Scan(&one, &some, &none, &many, &anything)
		if err != nil || none != nil || some == nil || len(many) != 2 {
			t.Errorf("%s: read as %v, %v, %v: %v", name, some, none, many, err)
			continue
		}
		for _, got := range []any{one, *some, many[0], many[1], anything} {
			if at, ok := got.(time.Time); !ok || !at.Equal(last) || at.Location() != time.UTC {
				t.Errorf("%s: %s is read as %v, in %v", name, last, got, at.Location())
			}
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		err = pool.QueryRow(t.Context(), "select array[$1::timestamptz]", last).Scan(&anything)
		if list, ok := anything.([]any); err != nil || !ok || len(list) != 1 || list[0] != any(last) { // its zone, too
			t.Errorf("%s: a list is read as %v: %v", name, anything, err)
		}
	}
}
