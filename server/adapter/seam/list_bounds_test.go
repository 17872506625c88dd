package seam_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/seam"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// endless is a list that does not end, in one of several ways.
type endless struct {
	elements int    // of a page
	padding  int    // bytes of each element
	cursor   string // of each page; empty: a new one
	hangs    bool   // the second page gets no answer
	maxCalls int32  // that the adapter may send
	want     string // in the error
}

// Each list of an upstream server that does not end fails: the pages, the elements, the bytes, and the time of all pages
// are bounded together.
func TestLists_AreBoundedAsAWhole(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]endless{
		"pages":         {elements: 1, maxCalls: 200, want: "more than 200 pages"},
		"empty pages":   {maxCalls: 200, want: "more than 200 pages"},
		"elements":      {elements: 20_000, maxCalls: 3, want: "more than"},
		"bytes":         {elements: 10, padding: 20_000, maxCalls: 6, want: "larger than 1000000 bytes"},
		"the same page": {elements: 1, cursor: "c", maxCalls: 2, want: "leads to no other one"},
		"a long cursor": {elements: 1, cursor: strings.Repeat("c", 5000), maxCalls: 1, want: "leads to no other one"},
		"time":          {elements: 1, hangs: true, maxCalls: 2, want: "takes longer than"},
	} {
		for list, read := range map[string]func(*seam.Adapter) error{
			"devices": func(a *seam.Adapter) error { _, err := a.Devices(t.Context()); return err },
			"codes":   func(a *seam.Adapter) error { _, err := a.Codes(t.Context(), deviceID, false); return err },
		} {
			t.Run(list+"/"+name, func(t *testing.T) {
				t.Parallel()
				a, calls := e.start(t)
				ended := make(chan error, 1)
				go func() { ended <- read(a) }()
				var err error
				select {
				case err = <-ended:
				case <-time.After(testenv.Timeout(testenv.WaitTimeout)):
					t.Fatal("the list does not end")
				}
				if adapter.ClassOf(err) != adapter.Transient || !strings.Contains(err.Error(), e.want) {
					t.Errorf("the error is %v, want %q", err, e.want)
				}
				if n := calls.Load(); n > e.maxCalls {
					t.Errorf("%d pages were read, want at most %d", n, e.maxCalls)
				}
			})
		}
	}
}

func (e endless) start(t *testing.T) (a *seam.Adapter, calls *atomic.Int32) {
	t.Helper()
	calls = new(atomic.Int32)
	elements := func(element string) string {
		padded := strings.TrimSuffix(element, "}") + `,"padding":"` + strings.Repeat("x", e.padding) + `"}`
		return strings.TrimSuffix(strings.Repeat(padded+",", e.elements), ",")
	}
	bodies := map[string]string{
		"/devices/list":      `"devices":[` + elements(`{"device_id":"`+deviceID+`","device_type":"light"}`) + `]`,
		"/access_codes/list": `"access_codes":[` + elements(`{"access_code_id":"`+deviceID+`"}`) + `]`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil { // else the server does not notice that the client leaves
			return
		}
		body, ok := bodies[r.URL.Path]
		if !ok {
			_ = json.NewEncoder(w).Encode(map[string]any{"device": json.RawMessage(lockJSON), "access_codes": []any{}})
			return
		}
		n := calls.Add(1)
		if e.hangs && n > 1 {
			<-r.Context().Done()
			return
		}
		cursor := e.cursor
		if cursor == "" {
			cursor = fmt.Sprint("page ", n)
		}
		fmt.Fprintf(w, `{%s,"pagination":{"has_next_page":true,"next_page_cursor":%q}}`, body, cursor)
	}))
	t.Cleanup(server.Close)
	config := seam.Config{BaseURL: server.URL, APIKey: "seam_test", MaxListSize: 1_000_000}
	if e.padding == 0 {
		config.MaxListSize = 0
	}
	if e.hangs {
		config.ListTimeout = 50 * time.Millisecond
	}
	a = seam.New(config)
	t.Cleanup(func() { _ = a.Close() })
	return a, calls
}

// A caller that gives up while a list is read gets its own reason.
func TestLists_CallerGivesUp(t *testing.T) {
	t.Parallel()
	a, calls := endless{elements: 1, maxCalls: 2}.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Devices(ctx)
	if err == nil || strings.Contains(err.Error(), "takes longer") || calls.Load() > 0 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}
