package rest

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// Whoever has fifty thousand locks asks for all of them with two bytes.
func TestLongListsAreReadInParts(t *testing.T) {
	t.Parallel()
	const all = 3500
	at := func(n int) (time.Time, uuid.UUID) { return time.Unix(int64(n), 0), uuid.UUID{15: 1} }
	for limit, want := range map[int]int{1: 1, 999: 999, 1000: 1000, 1001: 1001, 2500: 2500, all: all, all + 1: all, 1 << 29: all} {
		read := func(p access.Page) (some []int, more bool, err error) {
			if p.Limit > mostAtOnce {
				t.Errorf("%d rows are read at once", p.Limit)
			}
			begin := 0
			if p.After.ID != uuid.Nil {
				begin = int(p.After.At.Unix()) + 1
			}
			for n := begin; n < min(begin+p.Limit, all); n++ {
				some = append(some, n)
			}
			return some, begin+p.Limit < all, nil
		}
		r, err := inParts(access.Page{Limit: limit}, read, at, func(n int) int { return n })
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if err := r.answer(w, map[string]bool{"ok": true}, "devices", "locks"); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Devices, Locks []int
			Ok             bool
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || !got.Ok || len(got.Devices) != want || len(got.Locks) != want {
			t.Errorf("limit %d: %d devices, %d locks, %v", limit, len(got.Devices), len(got.Locks), err)
			continue
		}
		for n, device := range got.Devices {
			if device != n || got.Locks[n] != n {
				t.Errorf("limit %d: row %d is %d and %d", limit, n, device, got.Locks[n])
			}
		}
		if last, _ := at(want - 1); r.last.At != last || r.more != (want < all) {
			t.Errorf("limit %d: the last row is of %s, and more follows: %t", limit, r.last.At, r.more)
		}
	}
	lost := errors.New("lost")
	if _, err := inParts(access.Page{Limit: 1}, func(access.Page) ([]int, bool, error) { return nil, false, lost }, at, func(n int) int { return n }); !errors.Is(err, lost) {
		t.Error(err)
	}
}

func TestNoPageIsLongerThanIsKept(t *testing.T) {
	t.Parallel()
	long := &operation{body: &shape{properties: []*property{{name: "limit", fallback: []byte("22900")}}}}
	short := &operation{body: &shape{properties: []*property{{name: "limit", fallback: []byte("500")}}}}
	for limit, want := range map[int][2]int{1: {1, 1}, 1000: {1000, 1000}, 1001: {1001, 1000}, 22901: {22900, 1000}, 1 << 60: {22900, 1000}} {
		if got := [2]int{long.bounded(limit), short.bounded(limit)}; got != want {
			t.Errorf("%d: %d, want %d", limit, got, want)
		}
	}
}
