package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

func TestReadResponse_Limits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		size, limit int
		want        error
	}{
		"nothing": {0, 10, nil}, "all that may be": {10, 10, nil}, "one more": {11, 10, adapter.ErrTooLarge},
		"small": {64 << 10, 8 << 20, nil}, "more than small": {64<<10 + 1, 8 << 20, nil},
		"middle": {1 << 20, 8 << 20, nil},
		"large":  {1<<20 + 1, 8 << 20, nil}, "the largest": {8 << 20, 8 << 20, nil},
		"too large": {8<<20 + 1, 8 << 20, adapter.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := -1
			err := adapter.ReadResponse(t.Context(), strings.NewReader(strings.Repeat("a", test.size)), test.limit,
				func(b []byte) error { got = len(b); return nil })
			if !errors.Is(err, test.want) || test.want == nil && got != test.size {
				t.Errorf("%d bytes of %d: %v", got, test.size, err)
			}
		})
	}
}

// A response is stored once, in a buffer of about its size.
func TestReadResponse_BufferSize(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1 << 20, 4 << 20, 8 << 20} {
		err := adapter.ReadResponse(t.Context(), strings.NewReader(strings.Repeat("a", size)), 8<<20,
			func(b []byte) error {
				if most := size + 64<<10; cap(b) > most {
					t.Errorf("buffer of %d bytes for %d", cap(b), size)
				}
				return nil
			})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestReadResponse_EndlessBody(t *testing.T) {
	t.Parallel()
	err := adapter.ReadResponse(t.Context(), endless{}, 2<<20, func([]byte) error { return nil })
	if !errors.Is(err, adapter.ErrTooLarge) {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// One large response is being read; another must not wait forever.
func TestLargeResponsesWaitForEachOther(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("a", 2<<20)
	err := adapter.ReadResponse(t.Context(), strings.NewReader(large), 8<<20, func([]byte) error {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		go func() {
			io.WriteString(w, large[:1<<20+1]) // the reader ends early
			cancel()
		}()
		err := adapter.ReadResponse(ctx, r, 8<<20, func([]byte) error { return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the other response is read meanwhile: %v", err)
		}
		// small responses do not wait
		return adapter.ReadResponse(t.Context(), strings.NewReader("{}"), 8<<20, func([]byte) error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
}

func TestList_Limits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`null`: 0, `[]`: 0, `[1,2]`: 2, `[` + strings.Repeat("1,", adapter.MaxListElements-1) + `1]`: adapter.MaxListElements,
		`[` + strings.Repeat("1,", adapter.MaxListElements) + `1]`: -1, `[1,null]`: -1, `{}`: -1, `"a"`: -1, `[1,"a"]`: -1,
		`[1`: -1,
	} {
		var got adapter.List[int]
		err := json.Unmarshal([]byte(text), &got)
		if (err != nil) != (want < 0) || err == nil && len(got) != want {
			t.Errorf("%.20s…: %d elements, %v", text, len(got), err)
		}
	}
	err := adapter.ReadResponse(t.Context(), strings.NewReader("["+strings.Repeat("{},", 100_001)), 8<<20,
		func([]byte) error { return nil })
	if !errors.Is(err, adapter.ErrTooLarge) {
		t.Errorf("too many objects: %v", err)
	}
	err = adapter.ReadResponse(t.Context(), strings.NewReader("["+strings.Repeat("1,", 1_000_001)), 8<<20,
		func([]byte) error { return nil })
	if !errors.Is(err, adapter.ErrTooLarge) {
		t.Errorf("too many values: %v", err)
	}
}

// A vendor that repeatedly sends megabytes must not create as much garbage.
func TestLargeResponsesReuseBuffers(t *testing.T) { //nolint:paralleltest // other tests must not take the buffers
	for _, size := range []int{1 << 20, 4 << 20, 8 << 20} {
		rooms := map[*byte]bool{}
		const times = 20
		for range times {
			err := adapter.ReadResponse(t.Context(), strings.NewReader(strings.Repeat("a", size)), 8<<20,
				func(b []byte) error { rooms[&b[0]] = true; return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(rooms) > times/2 { // the garbage collector takes some
			t.Errorf("%d responses of %d bytes use %d buffers", times, size, len(rooms))
		}
	}
}
