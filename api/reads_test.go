package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shelf is a server with managed codes that lists them by device, three on a page. It has no network, so that
// tests can wait until nothing moves.
type shelf struct {
	mu     sync.Mutex
	codes  map[string][]string // by device
	seen   []string
	before func(path string) // each answer
	all    bool              // heeds no device_id
	fails  func(path string) func(*http.Request) (*http.Response, error)
}

func (s *shelf) RoundTrip(req *http.Request) (*http.Response, error) {
	raw, _ := io.ReadAll(req.Body)
	var body struct {
		AccessCodeID string `json:"access_code_id"`
		DeviceID     string `json:"device_id"`
		PageCursor   string `json:"page_cursor"`
	}
	_ = json.Unmarshal(raw, &body)
	path := strings.TrimPrefix(req.URL.Path, "/api")
	s.mu.Lock()
	s.seen = append(s.seen, path+" "+body.DeviceID+body.AccessCodeID)
	s.mu.Unlock()
	if s.before != nil {
		s.before(path)
	}
	if req.Context().Err() != nil {
		return nil, req.Context().Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		if answer := s.fails(path); answer != nil {
			return answer(req)
		}
	}
	if !strings.HasSuffix(path, "/list") {
		return says(200, `{"ok": true}`)(req)
	}
	records := []map[string]string{}
	for device, ids := range s.codes {
		for _, id := range ids {
			if device == body.DeviceID || s.all {
				records = append(
					records,
					map[string]string{"access_code_id": id, "device_id": device, "name": "of " + path},
				)
			}
		}
	}
	slices.SortFunc(
		records,
		func(a, b map[string]string) int { return strings.Compare(a["access_code_id"], b["access_code_id"]) },
	)
	from := len(body.PageCursor)
	to := min(from+3, len(records))
	answer := map[string]any{"ok": true, "access_codes": records[from:to]}
	if to < len(records) {
		answer["pagination"] = map[string]any{"has_next_page": true, "next_page_cursor": strings.Repeat("x", to)}
	}
	encoded, _ := json.Marshal(answer)
	return says(200, string(encoded))(req)
}

func (s *shelf) count(request string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.seen {
		if strings.HasPrefix(seen, request) {
			n++
		}
	}
	return n
}

// reading is a client of the shelf, and its reads. The shelf is left alone by its own client from then on.
func (s *shelf) reading(t *testing.T) (*Client, *Reads) {
	t.Helper()
	client, err := New(
		Config{
			Endpoint:   "http://server.example/api/",
			Credential: testKey,
			UserAgent:  "test/1",
			Transport:  s,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return client, NewReads(client)
}

const listing = "/access_codes/list"

func newShelf() *shelf {
	return &shelf{codes: map[string][]string{"d1": {"a", "b", "c", "d"}, "d2": {"x"}}}
}

// expect fails the test unless the list tells of the code, or does not.
func expect(t *testing.T, r *Reads, device, id string, told bool) {
	t.Helper()
	if code := r.AccessCode(t.Context(), device, id); (code != nil) != told || told && code.AccessCodeID != id {
		t.Errorf("the list of %s says of %s: %v", device, id, code)
	}
}

func expectCount(t *testing.T, s *shelf, request string, want int) {
	t.Helper()
	if got := s.count(request); got != want {
		t.Errorf("%d requests for %s, want %d: %q", got, request, want, s.seen)
	}
}

func TestConcurrentReadsShareLists(t *testing.T) {
	t.Parallel()
	s := newShelf()
	_, r := s.reading(t)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { expect(t, r, "d1", string(rune('a'+i%4)), true) })
	}
	all.Wait()
	expect(t, r, "d1", "a", true)
	expect(t, r, "d2", "x", true)
	expectCount(t, s, listing+" d1", 2)
	expectCount(t, s, listing+" d2", 1)
}

func TestReads_NotOnList(t *testing.T) {
	t.Parallel()
	s := newShelf()
	_, r := s.reading(t)
	expect(t, r, "d1", "missing", false)
	expect(t, r, "d2", "a", false)
	expect(t, r, "", "a", false)
	expectCount(t, s, listing+" ", 3)
}

func TestReads_AfterWrite(t *testing.T) {
	t.Parallel()
	writes := map[string]func(context.Context, *Client) error{
		"to the code": func(ctx context.Context, c *Client) error {
			_, err := Call[OkResponse](ctx, c.UpdateAccessCode, UpdateAccessCodeRequest{AccessCodeID: "a"})
			return err
		},
		"to the device": func(ctx context.Context, c *Client) error {
			_, err := Call[OkResponse](ctx, c.CreateAccessCode, CreateAccessCodeRequest{DeviceID: "d1"})
			return err
		},
	}
	for name, write := range writes {
		for outcome, fails := range map[string]func(string) func(*http.Request) (*http.Response, error){
			"done":      nil,
			"cut short": func(string) func(*http.Request) (*http.Response, error) { return breaks(io.ErrUnexpectedEOF) },
		} {
			t.Run(name+", "+outcome, func(t *testing.T) {
				t.Parallel()
				s := newShelf()
				client, r := s.reading(t)
				expect(t, r, "d1", "a", true)
				expect(t, r, "d2", "x", true)
				s.fails = fails
				if err := write(t.Context(), client); (err != nil) != (fails != nil) {
					t.Fatal(err)
				}
				expect(t, r, "d1", "a", false)
				expect(t, r, "d1", "b", false)
				expect(t, r, "d2", "x", true)
				expectCount(t, s, listing+" d1", 2)
				expectCount(t, s, listing+" d2", 1)
			})
		}
	}
	t.Run("to what it does not name", func(t *testing.T) {
		t.Parallel()
		s := newShelf()
		client, r := s.reading(t)
		expect(t, r, "d2", "x", true)
		if _, err := Call[OkResponse](
			t.Context(),
			client.CreateWebhook,
			CreateWebhookRequest{URL: "https://example.com"},
		); err != nil {
			t.Fatal(err)
		}
		expect(t, r, "d2", "x", true)
		expectCount(t, s, listing+" d2", 2)
	})
}

func TestReads_WriteDuringList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		client, r := s.reading(t)
		gate := make(chan struct{})
		s.before = func(path string) {
			if path == listing {
				<-gate
			}
		}
		var early *AccessCode
		go func() { early = r.AccessCode(t.Context(), "d2", "x") }()
		synctest.Wait()
		if _, err := Call[OkResponse](
			t.Context(),
			client.UpdateAccessCode,
			UpdateAccessCodeRequest{AccessCodeID: "x"},
		); err != nil {
			t.Fatal(err)
		}
		expect(t, r, "d2", "x", false)
		other := make(chan *AccessCode)
		go func() { other <- r.AccessCode(t.Context(), "d2", "y") }()
		synctest.Wait()
		expectCount(t, s, listing+" d2", 2)
		close(gate)
		<-other
		synctest.Wait()
		if early != nil {
			t.Error("a code that was written to in the meantime comes from a list")
		}
	})
}

func TestReads_OneReaderGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		_, r := s.reading(t)
		gate := make(chan struct{})
		s.before = func(string) { <-gate }
		first, giveUp := context.WithCancel(t.Context())
		gone, stayed := make(chan *AccessCode, 1), make(chan *AccessCode, 1)
		go func() { gone <- r.AccessCode(first, "d2", "x") }()
		synctest.Wait()
		go func() { stayed <- r.AccessCode(t.Context(), "d2", "x") }()
		synctest.Wait()
		giveUp()
		if code := <-gone; code != nil {
			t.Error("the list was not waited for, and has answered")
		}
		close(gate)
		if code := <-stayed; code == nil {
			t.Error("the other got nothing")
		}
		expectCount(t, s, listing, 1)
	})
}

func TestReads_AllReadersGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		_, r := s.reading(t)
		given := false
		s.fails = func(string) func(*http.Request) (*http.Response, error) {
			return func(req *http.Request) (*http.Response, error) {
				<-req.Context().Done()
				given = true
				return nil, req.Context().Err()
			}
		}
		ctx, giveUp := context.WithCancel(t.Context())
		go r.AccessCode(ctx, "d2", "x")
		synctest.Wait()
		giveUp()
		synctest.Wait()
		if !given {
			t.Fatal("the request goes on")
		}
		s.fails = nil
		expect(t, r, "d2", "x", true)
	})
}

func TestReads_ListFails(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]func(*http.Request) (*http.Response, error){
		"no such operation": says(404, `<h1>404</h1>`),
		"no such device":    says(404, `{"error": {"type": "device_not_found", "message": "Device not found"}}`),
		"server fails":      says(500, `{"error": {"type": "internal", "message": "no"}}`),
		"page comes twice":  says(200, `{"access_codes": [], "pagination": {"has_next_page": true, "next_page_cursor": "x"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf()
			_, r := s.reading(t)
			s.fails = func(string) func(*http.Request) (*http.Response, error) { return failure }
			expect(t, r, "d1", "a", false)
			asked := len(s.seen)
			expect(t, r, "d1", "b", false)
			if len(s.seen) != asked {
				t.Error("it was asked again")
			}
			s.fails = nil
			expect(t, r, "d2", "x", true)
		})
	}
}

func TestReads_ServerIgnoresFilter(t *testing.T) {
	t.Parallel()
	s := newShelf()
	s.all = true
	client, r := s.reading(t)
	expect(t, r, "d1", "a", true)
	expect(t, r, "d2", "x", true)
	expect(t, r, "d3", "missing", false)
	expectCount(t, s, listing, 2)
	if _, err := Call[OkResponse](
		t.Context(),
		client.CreateAccessCode,
		CreateAccessCodeRequest{DeviceID: "d1"},
	); err != nil {
		t.Fatal(err)
	}
	expect(t, r, "d1", "a", false)
	expect(t, r, "d2", "x", true)
}

func TestReads_ListExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		_, r := s.reading(t)
		expect(t, r, "d1", "a", true)
		expect(t, r, "d2", "x", true)
		time.Sleep(listTTL + time.Second)
		expect(t, r, "d2", "x", true)
		expectCount(t, s, listing+" d2", 2)
		if len(r.codes.loads) != 1 || r.codes.kept != 1 {
			t.Errorf("%d lists with %d records are kept", len(r.codes.loads), r.codes.kept)
		}
	})
}

func TestReads_RecordLimit(t *testing.T) {
	t.Parallel()
	s := newShelf()
	for i := range 20 {
		s.codes["d3"] = append(s.codes["d3"], fmt.Sprintf("n%02d", i))
	}
	_, r := s.reading(t)
	r.codes.limit = 5
	expect(t, r, "d3", "n04", true)
	expect(t, r, "d3", "n05", false)
	expect(t, r, "d2", "x", false)
	expectCount(t, s, listing+" d3", 2)
	expectCount(t, s, listing+" d2", 0)
}

func TestReads_OtherKinds(t *testing.T) {
	t.Parallel()
	s := newShelf()
	client, r := s.reading(t)
	if code := r.UnmanagedAccessCode(
		t.Context(),
		"d2",
		"x",
	); code == nil ||
		*code.Name != "of /access_codes/unmanaged/list" {
		t.Errorf("%v", code)
	}
	s.fails = func(path string) func(*http.Request) (*http.Response, error) {
		if path == "/webhooks/list" {
			return says(
				200,
				`{"ok": true, "webhooks": [{"webhook_id": "w1", "url": "https://example.com", "event_types": ["*"]}]}`,
			)
		}
		return nil
	}
	for range 2 {
		if webhook := r.Webhook(t.Context(), "w1"); webhook == nil || webhook.URL != "https://example.com" {
			t.Errorf("%v", webhook)
		}
	}
	expectCount(t, s, "/webhooks/list", 1)
	if _, err := Call[OkResponse](
		t.Context(),
		client.UpdateWebhook,
		UpdateWebhookRequest{WebhookID: "w1", EventTypes: []string{"*"}},
	); err != nil {
		t.Fatal(err)
	}
	if webhook := r.Webhook(t.Context(), "w1"); webhook != nil {
		t.Error("the webhook comes from a list of before")
	}
	if code := r.UnmanagedAccessCode(t.Context(), "d2", "x"); code == nil {
		t.Error("a webhook has to do with access codes")
	}
	expectCount(t, s, "/access_codes/unmanaged/list", 1)
}

// Each kind is read from its list until a write names the record.
func TestReads_DevicesAndPeople(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]struct {
		path, answer string
		read         func(context.Context, *Reads) bool
		write        func(context.Context, *Client) error
	}{
		"devices": {
			"/devices/list",
			`{"ok": true, "devices": [{"device_id": "x"}]}`,
			func(ctx context.Context, r *Reads) bool { return r.Device(ctx, "x") != nil },
			func(ctx context.Context, c *Client) error {
				_, err := Call[OkResponse](ctx, c.UpdateDevice, UpdateDeviceRequest{DeviceID: "x"})
				return err
			},
		},
		"users of an access system": {
			"/acs/users/list",
			`{"ok": true, "acs_users": [{"acs_user_id": "x", "acs_system_id": "s"}]}`,
			func(ctx context.Context, r *Reads) bool {
				return r.AcsUser(ctx, "s", "x") != nil && r.AcsUser(ctx, "", "x") == nil
			},
			func(ctx context.Context, c *Client) error {
				_, err := Call[OkResponse](ctx, c.SuspendAcsUser, AcsUserRequest{AcsUserID: "x"})
				return err
			},
		},
		"user identities": {
			"/user_identities/list",
			`{"ok": true, "user_identities": [{"user_identity_id": "x"}]}`,
			func(ctx context.Context, r *Reads) bool { return r.UserIdentity(ctx, "x") != nil },
			func(ctx context.Context, c *Client) error {
				request := UpdateUserIdentityRequest{UserIdentityID: "x"}
				_, err := Call[OkResponse](ctx, c.UpdateUserIdentity, request)
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf()
			client, r := s.reading(t)
			s.fails = func(path string) func(*http.Request) (*http.Response, error) {
				if path == kind.path {
					return says(200, kind.answer)
				}
				return nil
			}
			for range 2 {
				if !kind.read(t.Context(), r) {
					t.Error("the list is not used")
				}
			}
			expectCount(t, s, kind.path, 1)
			if err := kind.write(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			if kind.read(t.Context(), r) {
				t.Error("the record comes from a list of before the write")
			}
		})
	}
}
