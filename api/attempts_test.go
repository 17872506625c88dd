package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func attempt(status, problem string) string {
	return fmt.Sprintf(
		`{"ok": true, "action_attempt": {"action_attempt_id": "a1", "action_type": "CREATE_ACCESS_CODE", "status": %q, "result": null, "error": %s}}`,
		status,
		problem,
	)
}

var pendingAttempt = ActionAttempt{
	ActionAttemptID: "a1",
	ActionType:      "CREATE_ACCESS_CODE",
	Status:          ActionAttemptStatusPending,
}

func TestAwait(t *testing.T) {
	pending := says(200, attempt("pending", "null"))
	cases := map[string]struct {
		attempt ActionAttempt
		answers []func(*http.Request) (*http.Response, error)
		problem string
	}{
		"it succeeds": {
			pendingAttempt,
			[]func(*http.Request) (*http.Response, error){pending, pending, says(200, attempt("success", "null"))},
			"",
		},
		"it had already": {ActionAttempt{ActionAttemptID: "a1", Status: ActionAttemptStatusSuccess}, nil, ""},
		"there is none":  {ActionAttempt{}, nil, ""},
		"a state to come": {
			pendingAttempt,
			[]func(*http.Request) (*http.Response, error){
				says(200, attempt("queued", "null")),
				says(200, attempt("success", "null")),
			},
			"",
		},
		"it fails": {
			pendingAttempt,
			[]func(*http.Request) (*http.Response, error){
				says(200, attempt("error", `{"type": "device_offline", "message": "The lock is offline"}`)),
			},
			"action attempt a1 (CREATE_ACCESS_CODE) failed: The lock is offline (device_offline)",
		},
		"it fails for no reason": {
			pendingAttempt,
			[]func(*http.Request) (*http.Response, error){says(200, attempt("error", `null`))},
			"action attempt a1 (CREATE_ACCESS_CODE) failed, and the server does not say why",
		},
		"it may not be read": {
			pendingAttempt,
			[]func(*http.Request) (*http.Response, error){pending, says(403, ``)},
			"action attempt a1 (CREATE_ACCESS_CODE) was last seen pending: the server answered 403",
		},
		"it cannot be read for a while": {
			pendingAttempt,
			[]func(*http.Request) (*http.Response, error){
				pending,
				says(500, `{"ok": false, "error": {"type": "internal_error", "message": "No"}}`),
				breaks(noSuch),
				cutOff,
				says(200, attempt("success", "null")),
			},
			"",
		},
		"a proxy has lost the server": {
			pendingAttempt,
			append(slices.Repeat([]func(*http.Request) (*http.Response, error){says(404, "<h1>404</h1>")}, 5),
				says(200, attempt("error", `{"type": "device_offline", "message": "The lock is offline"}`))),
			"action attempt a1 (CREATE_ACCESS_CODE) failed: The lock is offline (device_offline)",
		},
		"the server has no such operation": {
			pendingAttempt,
			slices.Repeat([]func(*http.Request) (*http.Response, error){says(404, "<h1>404</h1>")}, maxBare404s+1),
			"",
		},
		"the server says that it has none": {pendingAttempt, []func(*http.Request) (*http.Response, error){
			says(404, `{"ok": false, "error": {"type": "route_not_found", "message": "No"}}`),
		}, ""},
		"the server stays away for long": {
			pendingAttempt,
			append(
				slices.Repeat([]func(*http.Request) (*http.Response, error){breaks(refused)}, 3*maxTries),
				says(200, attempt("success", "null")),
			),
			"",
		},
		"the server cannot be trusted any more": {
			pendingAttempt,
			[]func(*http.Request) (*http.Response, error){breaks(http.ErrSchemeMismatch)},
			"action attempt a1 (CREATE_ACCESS_CODE) was last seen pending: ",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, s := scripted(t, c.answers...)
				err := client.Await(t.Context(), c.attempt)
				if (err == nil) != (c.problem == "") || err != nil && !strings.HasPrefix(err.Error(), c.problem) {
					t.Errorf("got  %v\nwant %s", err, c.problem)
				}
				if len(s.answers) != 0 {
					t.Errorf("%d answers were not asked for", len(s.answers))
				}
			})
		})
	}
}

// A caller that does not read the resource afterwards learns that the outcome is unknown.
func TestAwaitKnown_OutcomeUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		attempt ActionAttempt
		answers []func(*http.Request) (*http.Response, error)
		unknown bool
	}{
		"no attempt": {attempt: ActionAttempt{}, unknown: true},
		"bare 404s of a proxy": {
			attempt: pendingAttempt,
			answers: slices.Repeat([]func(*http.Request) (*http.Response, error){says(404, "<h1>404</h1>")}, maxBare404s+1),
			unknown: true,
		},
		"no such operation": {
			attempt: pendingAttempt,
			answers: []func(*http.Request) (*http.Response, error){
				says(404, `{"ok": false, "error": {"type": "route_not_found", "message": "No"}}`),
			},
			unknown: true,
		},
		"a forgotten attempt": {
			attempt: pendingAttempt,
			answers: []func(*http.Request) (*http.Response, error){
				says(404, `{"ok": false, "error": {"type": "action_attempt_not_found", "message": "No"}}`),
			},
			unknown: true,
		},
		"success": {
			attempt: pendingAttempt,
			answers: []func(*http.Request) (*http.Response, error){says(200, attempt("success", "null"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := scripted(t, c.answers...)
				err := client.AwaitKnown(t.Context(), c.attempt)
				if c.unknown != errors.Is(err, ErrOutcomeUnknown) || !c.unknown && err != nil {
					t.Errorf("the outcome is unknown: %v, want %v: %v", !c.unknown, c.unknown, err)
				}
			})
		})
	}
}

func TestAwait_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		client, s := scripted(
			t,
			slices.Repeat(
				[]func(*http.Request) (*http.Response, error){says(200, attempt("pending", "null"))},
				1000,
			)...)
		start := time.Now()
		err := client.Await(ctx, pendingAttempt)
		if !errors.Is(err, context.DeadlineExceeded) ||
			err.Error() != "action attempt a1 (CREATE_ACCESS_CODE) was still pending when the time was up" {
			t.Errorf("error: %v", err)
		}
		if waited := time.Since(start); waited != 5*time.Minute {
			t.Errorf("waited %s", waited)
		}
		if n := len(s.seen); n < 90 || n > 120 {
			t.Errorf("asked %d times in five minutes", n)
		}
	})
}

func TestAwait_LastPollFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		client, _ := scripted(t, slices.Repeat([]func(*http.Request) (*http.Response, error){says(500, "")}, 100)...)
		err := client.Await(ctx, pendingAttempt)
		const want = "action attempt a1 (CREATE_ACCESS_CODE) was still pending when the time was up, and the last time it was asked for, it could not be read: the server answered 500"
		if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error: %v", err)
		}
	})
}

func TestPages(t *testing.T) {
	page := func(more bool, cursor string) Pagination {
		p := Pagination{HasNextPage: more}
		if cursor != "" {
			p.NextPageCursor = &cursor
		}
		return p
	}
	cases := map[string]struct {
		pages   []Pagination
		asked   []string
		problem string
	}{
		"one":           {[]Pagination{page(false, "")}, []string{""}, ""},
		"no pagination": {[]Pagination{{}}, []string{""}, ""},
		"three": {
			[]Pagination{page(true, "a"), page(true, "b"), page(false, "")},
			[]string{"", "a", "b"},
			"",
		},
		"a cursor at the end": {[]Pagination{page(true, "a"), page(false, "b")}, []string{"", "a"}, ""},
		"no cursor":           {[]Pagination{page(true, "")}, []string{""}, ""},
		"a circle": {
			[]Pagination{page(true, "a"), page(true, "b"), page(true, "a")},
			[]string{"", "a", "b"},
			"the server repeats the page",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var asked []string
			got, err := Collect(Pages(func(cursor string) ([]string, Pagination, error) {
				asked = append(asked, cursor)
				return []string{"x" + cursor, "y" + cursor}, c.pages[len(asked)-1], nil
			}))
			if !slices.Equal(asked, c.asked) {
				t.Errorf("asked for %q", asked)
			}
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("error: %v", err)
				}
				return
			}
			if err != nil || len(got) != 2*len(c.asked) || got[0] != "x" ||
				got[len(got)-1] != "y"+c.asked[len(c.asked)-1] {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestPages_StopsEarly(t *testing.T) {
	asked := 0
	for range Pages(func(string) ([]int, Pagination, error) {
		asked++
		next := fmt.Sprint(asked)
		return []int{1, 2}, Pagination{HasNextPage: true, NextPageCursor: &next}, nil
	}) {
		break
	}
	if asked != 1 {
		t.Errorf("asked for %d pages", asked)
	}
}
