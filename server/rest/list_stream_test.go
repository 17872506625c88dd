package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

const allRows = 3500

func rowPosition(n int) (time.Time, uuid.UUID) { return time.Unix(int64(n), 0), uuid.UUID{15: 1} }

func readRows(_ context.Context, p domain.Page) (some []int, more bool, err error) {
	begin := 0
	if p.After.ID != uuid.Nil {
		begin = int(p.After.At.Unix()) + 1
	}
	for n := begin; n < min(begin+p.Limit, allRows); n++ {
		some = append(some, n)
	}
	return some, begin+p.Limit < allRows, nil
}

func always(context.Context) error { return nil }

func itself(n int) int { return n }

// A tiny request can list fifty thousand locks, and the response contains each list twice.
func TestLongListsAreStreamed(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{1: 1, 999: 999, 1000: 1000, 1001: 1001, 2500: 2500, allRows: allRows, allRows + 1: allRows, 1 << 29: allRows} {
		r, err := streamRows(
			t.Context(),
			domain.Page{Limit: limit},
			always,
			func(ctx context.Context, p domain.Page) ([]int, bool, error) {
				if p.Limit > maxRowsInMemory {
					t.Errorf("%d rows are read at once", p.Limit)
				}
				return readRows(ctx, p)
			},
			rowPosition,
			itself,
			"devices",
			"locks",
		)
		if err != nil {
			t.Fatal(err)
		}
		w, last := httptest.NewRecorder(), part{}
		if err := r.answer(w, func(p part) any { last = p; return map[string]bool{"ok": true} }); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Devices, Locks []int
			Ok             bool
		}
		if err := json.Unmarshal(
			w.Body.Bytes(),
			&got,
		); err != nil || !got.Ok || len(got.Devices) != want ||
			len(got.Locks) != want {
			t.Errorf("limit %d: %d devices, %d locks, %v", limit, len(got.Devices), len(got.Locks), err)
			continue
		}
		for n, device := range got.Devices {
			if device != n || got.Locks[n] != n {
				t.Errorf("limit %d: row %d is %d and %d", limit, n, device, got.Locks[n])
			}
		}
		if at, _ := rowPosition(want - 1); last.last.At != at || last.more != (want < allRows) {
			t.Errorf("limit %d: the last row is of %s, and more follows: %t", limit, last.last.At, last.more)
		}
	}
}

// A truncated list must not look complete.
func TestList_ReadFails(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	for good := range 3 {
		reads := 0
		r, err := streamRows(
			t.Context(),
			domain.Page{Limit: allRows},
			always,
			func(ctx context.Context, p domain.Page) ([]int, bool, error) {
				if reads++; reads > good {
					return nil, false, lost
				}
				return readRows(ctx, p)
			},
			rowPosition,
			itself,
			"devices",
		)
		w := httptest.NewRecorder()
		if err == nil {
			err = r.answer(w, func(part) any { return nil })
		}
		if !errors.Is(err, lost) || json.Valid(w.Body.Bytes()) {
			t.Errorf("after %d parts: %v, and %d bytes", good, err, w.Body.Len())
		}
	}
}

// Each further part requires that the caller still has access.
func TestList_AccessLost(t *testing.T) {
	t.Parallel()
	ended := errors.New("ended")
	for good := range 3 {
		reads, asked := 0, 0
		r, err := streamRows(t.Context(), domain.Page{Limit: allRows}, func(context.Context) error {
			if asked++; asked > good {
				return ended
			}
			return nil
		}, func(ctx context.Context, p domain.Page) ([]int, bool, error) {
			reads++
			return readRows(ctx, p)
		}, rowPosition, itself, "devices")
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if err := r.answer(
			w,
			func(part) any { return nil },
		); !errors.Is(err, ended) || json.Valid(w.Body.Bytes()) ||
			reads != good+1 {
			t.Errorf("after %d parts more: %v, %d were read, and %d bytes sent", good, err, reads, w.Body.Len())
		}
	}
}

// The remaining rows can be deleted after the first part.
func TestList_RowsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	r, err := streamRows(
		t.Context(),
		domain.Page{Limit: allRows},
		always,
		func(ctx context.Context, p domain.Page) ([]int, bool, error) {
			if p.After.ID != uuid.Nil {
				return nil, false, nil
			}
			return readRows(ctx, p)
		},
		rowPosition,
		itself,
		"devices",
	)
	if err != nil {
		t.Fatal(err)
	}
	w, last := httptest.NewRecorder(), part{more: true}
	err = r.answer(w, func(p part) any { last = p; return map[string]bool{"ok": true} })
	if !json.Valid(w.Body.Bytes()) || err != nil || last.more ||
		last.last != (domain.Position{At: time.Unix(999, 0), ID: uuid.UUID{15: 1}}) {
		t.Errorf("%+v, %v: %.50s", last.last, err, w.Body)
	}
}

func TestPageLengthIsBounded(t *testing.T) {
	t.Parallel()
	long := &operation{body: &shape{properties: []*property{{name: "limit", fallback: []byte("22900")}}}}
	short := &operation{body: &shape{properties: []*property{{name: "limit", fallback: []byte("500")}}}}
	for limit, want := range map[int][2]int{1: {1, 1}, 1000: {1000, 1000}, 1001: {1001, 1000}, 22901: {22900, 1000}, 1 << 60: {22900, 1000}} {
		if got := [2]int{long.capLimit(limit), short.capLimit(limit)}; got != want {
			t.Errorf("%d: %d, want %d", limit, got, want)
		}
	}
}
