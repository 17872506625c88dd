package accesscloud_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is an account with one simulated access system. With cut, the response to a write is lost.
type bed struct {
	*testing.T
	*accesscloud.Adapter
	system adapter.SystemRef
	token  string
	url    string
	cut    atomic.Bool
}

func start(t *testing.T) *bed {
	t.Helper()
	box := sandbox.New(sandbox.Options{Seed: 1, Speed: 1000})
	t.Cleanup(box.Close)
	made, err := box.EnsureAccessAccount(sandbox.AccessSpec{Key: t.Name(), Systems: 2})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, system: adapter.SystemRef(made.Systems[0].ID), token: made.Token}
	cloud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.cut.Load() && r.Method != http.MethodGet {
			box.Handler().ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		box.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(cloud.Close)
	b.url = cloud.URL
	b.Adapter = accesscloud.New(accesscloud.Config{BaseURL: cloud.URL, Token: made.Token})
	t.Cleanup(func() { b.Close() })
	return b
}

// control calls a control of the system.
func (b *bed) control(method, path, body string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, b.url+"/sandbox/"+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	res.Body.Close()
	if http.DefaultClient.CloseIdleConnections(); res.StatusCode >= 300 {
		b.Fatalf("%s %s: %s", method, path, res.Status)
	}
}

func (b *bed) look() adapter.SystemContent {
	b.Helper()
	c, err := b.ReadSystem(b.Context(), b.system)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b *bed) put(u adapter.AccessUser) adapter.UserRef {
	b.Helper()
	ref, err := b.PutUser(b.Context(), b.system, u)
	if err != nil {
		b.Fatal(err)
	}
	return ref
}

func find(c adapter.SystemContent, ref adapter.UserRef) *adapter.AccessUser {
	if i := slices.IndexFunc(c.Users, func(u adapter.AccessUser) bool { return u.Ref == ref }); i >= 0 {
		return &c.Users[i]
	}
	return nil
}

func fails(t *testing.T, what string, err error, class adapter.Class) {
	t.Helper()
	if adapter.AsError(err) == nil || adapter.ClassOf(err) != class {
		t.Errorf("%s: %v, want %s", what, err, class)
	}
}

func TestPutUser_ReadBackOncePerKey(t *testing.T) {
	t.Parallel()
	b := start(t)
	systems, err := b.Systems(t.Context())
	if err != nil || len(systems) != 2 || systems[0].Ref != b.system || systems[0].Name == "" ||
		systems[0].TimeZone == "" || !systems[0].Online {
		t.Fatalf("%+v %v", systems, err)
	}
	there := b.look()
	if len(there.Users) != 2 || len(there.Groups) != 2 || len(there.Entrances) != 3 || there.Users[0].Key != "" {
		t.Fatalf("%+v", there)
	}
	starts, ends := time.Date(2030, 6, 1, 10, 0, 0, 123456000, time.FixedZone("", 2*60*60)),
		time.Date(2030, 9, 1, 0, 0, 0, 0, time.UTC)
	want := adapter.AccessUser{
		Key:       "k1",
		FullName:  "Zoë O’Brien-Łukasiewicz 👩‍🚒 יעל",
		Email:     "zoë@example.com",
		Phone:     "+1 555 0100",
		StartsAt:  &starts,
		EndsAt:    &ends,
		Suspended: true,
		Groups:    []string{there.Groups[1].Ref},
		Entrances: []string{there.Entrances[1].Ref},
	}
	want.Ref = b.put(want)
	got := find(b.look(), want.Ref)
	if got == nil || got.Key != want.Key || got.FullName != want.FullName || got.Email != want.Email ||
		got.Phone != want.Phone || !got.Suspended ||
		!slices.Equal(got.Groups, want.Groups) || !slices.Equal(got.Entrances, want.Entrances) ||
		!got.StartsAt.Equal(starts) || !got.EndsAt.Equal(ends) {
		t.Fatalf("%+v", got)
	}
	again := want
	if again.Ref = ""; b.put(again) != want.Ref || len(b.look().Users) != 3 {
		t.Error("the same key created another user")
	}
	if b.put(adapter.AccessUser{Ref: want.Ref, Key: want.Key, FullName: "Zoë"}) != want.Ref {
		t.Error("a change created another user")
	}
	if got := find(b.look(), want.Ref); got.Email != "" || got.StartsAt != nil || got.EndsAt != nil ||
		got.Suspended || len(got.Groups) != 0 || len(got.Entrances) != 0 {
		t.Errorf("unset fields are kept: %+v", got)
	}
	for range 2 { // deleting an absent user is not an error
		if err := b.DeleteUser(t.Context(), b.system, want.Ref); err != nil {
			t.Error(err)
		}
	}
	if find(b.look(), want.Ref) != nil {
		t.Error("the user exists")
	}
	_, err = b.PutUser(t.Context(), b.system, adapter.AccessUser{Ref: want.Ref, FullName: "Zoë"})
	fails(t, "a change of one that is gone", err, adapter.NotFound)
	_, err = b.PutUser(t.Context(), b.system, adapter.AccessUser{Key: "k2"})
	fails(t, "no name", err, adapter.Invalid)
	_, err = b.PutUser(t.Context(), b.system, adapter.AccessUser{Key: "k2", FullName: "Zoë", Groups: []string{"none"}})
	fails(t, "no such group", err, adapter.Invalid)
	_, err = b.PutUser(t.Context(), b.system,
		adapter.AccessUser{Key: "k2", FullName: "Zoë", Entrances: []string{"none"}})
	fails(t, "no such entrance", err, adapter.Invalid)
	_, err = b.ReadSystem(t.Context(), "none/../"+b.system)
	fails(t, "no such system", err, adapter.NotFound)
}

func TestSystemFaults(t *testing.T) {
	t.Parallel()
	b := start(t)
	ref := b.put(adapter.AccessUser{Key: "k", FullName: "Jane"})
	faults := "systems/" + string(b.system) + "/faults"
	for _, class := range []adapter.Class{
		adapter.Transient, adapter.AuthRevoked, adapter.Full, adapter.Invalid,
		adapter.Unconfirmed,
	} {
		b.control(http.MethodPut, faults, fmt.Sprintf(`{"failure_rate":{%q:1}}`, class))
		_, err := b.PutUser(t.Context(), b.system, adapter.AccessUser{Key: "k", FullName: "Jane Doe"})
		fails(t, "put", err, class)
		if class == adapter.Transient || class == adapter.AuthRevoked {
			_, err = b.ReadSystem(t.Context(), b.system)
			fails(t, "look", err, class)
		}
	}
	b.control(http.MethodPut, faults, "{}")
	if got := b.look(); len(got.Users) != 3 || find(got, ref).FullName != "Jane Doe" {
		t.Errorf("a write whose response was lost: %+v", got.Users)
	}
	b.cut.Store(true)
	fails(t, "a deletion whose answer is lost", b.DeleteUser(t.Context(), b.system, ref), adapter.Unconfirmed)
	b.cut.Store(false)
	if err := b.DeleteUser(t.Context(), b.system, ref); err != nil || find(b.look(), ref) != nil {
		t.Errorf("repeated: %v", err)
	}
	b.control(http.MethodPost, "systems/"+string(b.system)+"/offline", "")
	_, err := b.ReadSystem(t.Context(), b.system)
	fails(t, "look", err, adapter.Offline)
	if systems, err := b.Systems(t.Context()); err != nil || systems[0].Online || !systems[1].Online {
		t.Errorf("%+v %v", systems, err)
	}
	b.control(http.MethodPost, "account/revoke", "")
	_, err = b.Systems(t.Context())
	fails(t, "systems", err, adapter.AuthRevoked)
}

// vendor returns the adapter of a cloud that responds with the handler.
func vendor(t *testing.T, answer http.HandlerFunc) *accesscloud.Adapter {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	a := accesscloud.New(accesscloud.Config{BaseURL: s.URL, Token: "tok-secret"})
	t.Cleanup(func() { a.Close() })
	return a
}

func says(status int, header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for line := range strings.Lines(header) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestInvalidResponses(t *testing.T) {
	t.Parallel()
	const down, maybe, later = adapter.GatewayDown, adapter.Unconfirmed, adapter.Transient
	endless := func(w http.ResponseWriter, r *http.Request) {
		for block := make([]byte, 1<<20); r.Context().Err() == nil; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	heard := make(chan struct{})
	silent := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case heard <- struct{}{}:
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	}
	for name, c := range map[string]struct {
		answer                  http.HandlerFunc
		systems, look, put, del adapter.Class // empty: no error
		givenUp                 bool          // the vendor may have executed the request
	}{
		"nothing":         {says(200, "", ""), later, later, maybe, "", false},
		"garbage":         {says(200, "", "<html>"), later, later, maybe, "", false},
		"half":            {says(200, "", `{"systems":[{"system_id":"1"}`), later, later, maybe, "", false},
		"an empty object": {says(200, "", "{}"), later, later, maybe, "", false},
		"null":            {says(200, "", `{"systems":null,"users":null}`), later, later, maybe, "", false},
		"users alone":     {says(200, "", `{"systems":[],"users":[]}`), "", later, maybe, "", false},
		"500":             {says(500, "", "oops"), later, later, later, later, false},
		"502":             {says(502, "", "<html>"), later, later, maybe, maybe, false},
		"401": {
			says(401, "", ""), adapter.AuthRevoked, adapter.AuthRevoked, adapter.AuthRevoked,
			adapter.AuthRevoked, false,
		},
		"404 of a proxy":   {says(404, "", "<html>"), later, later, later, later, false},
		"a redirect":       {says(307, "Location: /else", ""), later, later, later, later, false},
		"another protocol": {says(101, "Connection: Upgrade", ""), later, later, maybe, maybe, false},
		"without end":      {endless, later, later, maybe, maybe, false},
		"cut off": {
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, down, down,
			maybe, maybe, false,
		},
		"no answer": {silent, down, down, maybe, maybe, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := vendor(t, c.answer)
			ctx := func() context.Context {
				if !c.givenUp {
					return t.Context()
				}
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					defer cancel()
					select {
					case <-heard:
					case <-ctx.Done():
					}
				}()
				return ctx
			}
			expect := func(what string, err error, class adapter.Class) {
				t.Helper()
				if class == "" {
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
					return
				}
				fails(t, what, err, class)
			}
			_, err := a.Systems(ctx())
			expect("systems", err, c.systems)
			_, err = a.ReadSystem(ctx(), "1")
			expect("look", err, c.look)
			_, err = a.PutUser(ctx(), "1", adapter.AccessUser{FullName: "Jane"})
			expect("put", err, c.put)
			expect("delete", a.DeleteUser(ctx(), "1", "2"), c.del)
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	a := accesscloud.New(accesscloud.Config{BaseURL: gone.URL})
	_, err := a.PutUser(t.Context(), "1", adapter.AccessUser{FullName: "Jane"})
	fails(t, "a write that could not be sent", err, down)
	fails(t, "a deletion that could not be sent", a.DeleteUser(t.Context(), "1", "2"), down)
}

func TestErrors_BoundedWaitAndNoToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header, body string
		want         time.Duration
	}{
		"seconds": {"Retry-After: 7", "", 7 * time.Second},
		"exact": {
			"Retry-After: 7", `{"error_code":"RATE_LIMITED","retry_after_ms":250}`,
			250 * time.Millisecond,
		},
		"for ever":        {"Retry-After: 9223372036854775807", "", time.Hour},
		"for ever, exact": {"", `{"error_code":"RATE_LIMITED","retry_after_ms":9223372036854775807}`, time.Hour},
		"before now":      {"Retry-After: -5", `{"retry_after_ms":-9223372036854775808}`, 0},
		"too large":       {"Retry-After: 99999999999999999999", "", time.Hour},
		"overflowing":     {"Retry-After: 18446744074", "", time.Hour},
		"a date": {
			"Date: Mon, 01 Jan 2029 00:00:00 GMT\nRetry-After: Mon, 01 Jan 2029 00:00:40 GMT", "",
			40 * time.Second,
		},
		"a late date": {
			"Date: Mon, 01 Jan 2029 00:00:00 GMT\nRetry-After: Fri, 31 Dec 9999 00:00:00 GMT", "",
			time.Hour,
		},
		"a past date": {"Date: Mon, 01 Jan 2029 00:00:00 GMT\nRetry-After: Sun, 31 Dec 2028 00:00:00 GMT", "", 0},
		"no clock":    {"Date: now\nRetry-After: Fri, 31 Dec 9999 00:00:00 GMT", "", time.Hour},
		"nonsense":    {"Retry-After: soon", "", 0},
	} {
		_, err := vendor(t, says(http.StatusTooManyRequests, c.header, c.body)).Systems(t.Context())
		if e := adapter.AsError(err); e == nil || e.Class != adapter.Transient || e.RetryAfter != c.want {
			t.Errorf("%s: %+v, want %s", name, e, c.want)
		}
	}
	_, err := vendor(t, says(http.StatusUnauthorized, "",
		`{"error_code":"UNAUTHORIZED","message":"tok-secret\r\nis no good `+strings.Repeat("é",
			5000)+`"}`)).Systems(t.Context())
	if message := adapter.AsError(err).Message; strings.Contains(message, "tok-secret") ||
		strings.ContainsAny(message, "\r\n") || len([]rune(message)) > 201 {
		t.Errorf("%q", message)
	}
}

func TestIdentifiersOfDotsAreIgnored(t *testing.T) {
	t.Parallel()
	a := vendor(
		t,
		says(
			200,
			"",
			`{"systems":[{"system_id":"."},{"system_id":"1","name":"a"},{"name":"b"},{"system_id":".."},{"system_id":"..."}],
		"users":[{"user_id":".."},{"user_id":"u","full_name":"U"},{"full_name":"V"},{"user_id":"."}],"groups":[],"entrances":[]}`,
		),
	)
	systems, err := a.Systems(t.Context())
	if err != nil || len(systems) != 2 || systems[0].Ref != "1" || systems[0].Name != "a" || !systems[0].Online ||
		systems[1].Ref != "..." {
		t.Errorf("%+v %v", systems, err)
	}
	c, err := a.ReadSystem(t.Context(), "1")
	if err != nil || len(c.Users) != 1 || c.Users[0].Ref != "u" {
		t.Errorf("%+v %v", c, err)
	}
	for _, id := range []string{"", ".", ".."} {
		_, err := vendor(t, says(200, "", fmt.Sprintf(`{"user_id":%q}`, id))).PutUser(t.Context(), "1",
			adapter.AccessUser{FullName: "Jane"})
		fails(t, "a user made as "+strconv.Quote(id), err, adapter.Unconfirmed)
	}
}

// Millions of groups and entrances are bytes in the response, but all of them are in memory when users are listed.
func TestAccessPerUserIsLimited(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 0, 1000: 1000, 1001: 1000, 50_000: 1000} {
		refs := strings.TrimSuffix(strings.Repeat(`"r",`, n), ",")
		c, err := vendor(
			t,
			says(200, "", `{"users":[{"user_id":"u","group_ids":[`+refs+`],"entrance_ids":[`+refs+`]}],
				"groups":[],"entrances":[]}`),
		).ReadSystem(t.Context(), "1")
		if err != nil || len(c.Users) != 1 || len(c.Users[0].Groups) != want || len(c.Users[0].Entrances) != want {
			t.Errorf("of %d groups and entrances: %v", n, err)
		}
	}
}

func TestDeleteUser_OnlyMissingUserSucceeds(t *testing.T) {
	t.Parallel()
	if err := vendor(t, says(404, "", `{"error_code":"USER_NOT_FOUND"}`)).DeleteUser(t.Context(), "1",
		"2"); err != nil {
		t.Error(err)
	}
	fails(t, "no such system", vendor(t, says(404, "", `{"error_code":"SYSTEM_NOT_FOUND"}`)).DeleteUser(t.Context(),
		"1", "2"), adapter.NotFound)
}

func TestLargeSystemIsReadCompletely(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	many.WriteString(`{"groups":[],"entrances":[],"users":[`)
	for n := range 10000 {
		fmt.Fprintf(&many, `{"user_id":"u%d","full_name":"User %d","group_ids":[]},`, n, n)
	}
	many.WriteString(`{"user_id":"last"}]}`)
	if c, err := vendor(t, says(200, "", many.String())).ReadSystem(t.Context(), "1"); err != nil ||
		len(c.Users) != 10001 || c.Users[10000].Ref != "last" {
		t.Errorf("%d users, %v", len(c.Users), err)
	}
}
