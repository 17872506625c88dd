package reconcile_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
)

// creation reports whether a request creates a code.
func creation(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/access_codes")
}

// If a vendor reports its lock as offline, the code was not written. The server neither looks nor
// waits for it.
func TestNoCodeList_OfflineWriteDidNotArrive(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(b *bed, c device.Code){
		"its time is far ahead": func(b *bed, c device.Code) {
			_, err := b.access.Devices.UpdateCode(b.Context(), b.p, device.CodeChange{
				ID:            c.ID.String(),
				EvenIfOffline: true,
				StartsAt:      time.Now().Add(720 * time.Hour).Format(time.RFC3339),
				EndsAt:        time.Now().Add(721 * time.Hour).Format(time.RFC3339),
			})
			b.must(err)
		},
		"deleted": func(b *bed, c device.Code) {
			a, err := b.access.Devices.DeleteCode(b.Context(), b.p, c.ID.String(), "")
			b.must(err)
			b.succeeded(a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, s := startShut(t, options{profile: "smartthings"})
			var away, refused atomic.Bool
			away.Store(true)
			s.meets(func(r *http.Request) (*http.Response, error) {
				if !creation(r) || !away.Load() {
					return nil, nil
				}
				refused.Store(true)
				return says(r, http.StatusConflict, `{"error_code":"DEVICE_OFFLINE","message":"it is away"}`), nil
			})
			c, _ := b.create("2580")
			b.until("the write is refused", refused.Load)
			leave(b, c)
			away.Store(false)
			_, a := b.create("2591")
			b.must(b.access.Accounts.Hint(t.Context(), b.account, b.lock)) // the lock is back
			b.succeeded(a)
			if b.onLock("2580") {
				t.Error("the other code exists")
			}
		})
	}
}

// loses makes a cloud create a code and lose its response.
func (s *shut) loses(made *atomic.Int32, once bool) {
	s.meets(func(r *http.Request) (*http.Response, error) {
		if !creation(r) || once && made.Load() > 0 {
			return nil, nil
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		answer.Body.Close()
		made.Add(1)
		return nil, errors.New("the connection was reset")
	})
}

// A vendor answers a repeated create with the first code and thereby reveals its reference. If the
// code cannot be changed in place, it is recreated.
func TestNoCodeList_OtherPINIsRecreated(t *testing.T) {
	t.Parallel()
	b, s := startShut(t, options{profile: "august"})
	s.unchanging.Store(true)
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("codes are recreated", func() bool {
		d, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, "")
		return err == nil && d.Capabilities.RecreateToChange()
	})
	var made atomic.Int32
	s.loses(&made, true)
	c, _ := b.create("2580")
	b.until("the code exists but the response is lost", func() bool { return made.Load() > 0 })
	a, err := b.access.Devices.UpdateCode(t.Context(), b.p, device.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(err)
	b.succeeded(a)
	b.until("the desired code is on the lock", func() bool { return b.onLock("2591") })
	b.until("the old code is not on the lock", func() bool { return !b.onLock("2580") })
}

// A vendor with idempotent creates reveals where the uncertain code is, so that it can be removed.
func TestNoCodeList_UncertainCodeIsFoundAndRemoved(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(b *bed, c device.Code) device.Attempt{
		"its time is far ahead": func(b *bed, c device.Code) device.Attempt {
			a, err := b.access.Devices.UpdateCode(b.Context(), b.p, device.CodeChange{
				ID:       c.ID.String(),
				StartsAt: time.Now().Add(720 * time.Hour).Format(time.RFC3339), EndsAt: time.Now().Add(721 * time.Hour).Format(time.RFC3339),
			})
			b.must(err)
			return a
		},
		"deleted": func(b *bed, c device.Code) device.Attempt {
			a, err := b.access.Devices.DeleteCode(b.Context(), b.p, c.ID.String(), "")
			b.must(err)
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, s := startShut(t,
				options{profile: "smartthings", access: access.Options{ConfirmTimeout: 3 * time.Second}})
			var made atomic.Int32
			s.loses(&made, false)
			c, _ := b.create("2580")
			b.until("the code exists but the response is lost",
				func() bool { return made.Load() > 0 && b.onLock("2580") })
			a := leave(b, c)
			s.meets(func(*http.Request) (*http.Response, error) { return nil, nil })
			b.succeeded(a)
			b.until("the code has left the lock", func() bool { return !b.onLock("2580") })
			_, a = b.create("2591")
			b.succeeded(a)
		})
	}
}

// shut is the connection to a cloud that stops listing codes at some time and confirms writes on
// behalf of the locks.
type shut struct {
	unlisted   atomic.Bool
	unchanging atomic.Bool                                                   // no in-place changes
	meet       atomic.Pointer[func(r *http.Request) (*http.Response, error)] // runs before the cloud; nil: none
}

func (s *shut) RoundTrip(r *http.Request) (*http.Response, error) {
	if meet := s.meet.Load(); meet != nil {
		if answer, err := (*meet)(r); answer != nil || err != nil {
			return answer, err
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !s.unlisted.Load() {
		return answer, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll(string(data), `"list_codes":true`, `"list_codes":false`)
	if s.unchanging.Load() {
		text = strings.ReplaceAll(text, `"modify_codes":true`, `"modify_codes":false`)
	}
	if r.Method != http.MethodGet {
		text = strings.ReplaceAll(strings.ReplaceAll(text, `"status":"pending"`, `"status":"active"`),
			`"status":"deleting"`, `"status":"deleted"`)
	}
	answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// meets makes f run before the cloud from now on.
func (s *shut) meets(f func(r *http.Request) (*http.Response, error)) { s.meet.Store(&f) }

// says is a response of the cloud.
func says(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode:    status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       r,
	}
}

// startShut starts a bed at such a cloud, from the time on when codes are not listed.
func startShut(t *testing.T, o options) (*bed, *shut) {
	t.Helper()
	s := &shut{}
	o.http = &http.Client{Transport: s, Timeout: 10 * time.Second}
	b := start(t, o)
	s.unlisted.Store(true)
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("codes are not listed", func() bool {
		d, err := b.access.Devices.GetDevice(t.Context(), b.p, b.device, "")
		return err == nil && !d.Capabilities.ListCodes
	})
	return b, s
}

// Only the vendor's response shows that a code has left its lock.
func TestNoCodeList_UnknownCodeIsRecreated(t *testing.T) {
	t.Parallel()
	b, _ := startShut(t, options{profile: "august"})
	c, a := b.create("2580")
	b.succeeded(a)
	b.until("the code is on the lock", func() bool { return b.onLock("2580") })
	for _, on := range b.memory() {
		if on.Code == "2580" {
			b.control(http.MethodDelete, "keypad/codes/"+on.ID, nil)
		}
	}
	b.until("the code has left the lock", func() bool { return !b.onLock("2580") })
	a, err := b.access.Devices.UpdateCode(t.Context(), b.p, device.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(err)
	b.succeeded(a)
	b.until("the desired code is on the lock", func() bool { return b.onLock("2591") })
	if got := b.events(c.ID); countOf(got, "access_code.deleted_external_to_seam") != 1 {
		t.Errorf("events %v", got)
	}
}

// A lock that left its account may come back with its codes. That the vendor does not know them
// meanwhile means nothing.
func TestNoCodeList_CodeOfReturnedLockIsKnown(t *testing.T) {
	t.Parallel()
	b, s := startShut(t, options{profile: "august"})
	c, a := b.create("2580")
	b.succeeded(a)
	var back, refused, made atomic.Bool
	s.meets(func(r *http.Request) (*http.Response, error) {
		made.CompareAndSwap(false, r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/access_codes"))
		switch {
		case back.Load():
			return nil, nil
		case r.Method == http.MethodPatch:
			refused.Store(true)
			return says(r, http.StatusNotFound, `{"error_code":"ACCESS_CODE_NOT_FOUND","message":"there is none"}`), nil
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/locks"):
			return says(r, http.StatusOK, `{"locks":[]}`), nil
		case r.Method == http.MethodGet && refused.Load():
			return says(r, http.StatusNotFound, `{"error_code":"LOCK_NOT_FOUND","message":"there is none"}`), nil
		}
		return nil, nil
	})
	if _, err := b.access.Devices.UpdateCode(
		t.Context(),
		b.p,
		device.CodeChange{ID: c.ID.String(), PIN: "2591"},
	); err != nil {
		t.Fatal(err)
	}
	b.until("the device has left", func() bool { return b.code(c.ID).Status == device.StatusUnknown })
	back.Store(true)
	b.must(b.access.Accounts.Hint(t.Context(), b.account, ""))
	b.until("the desired code is on the lock", func() bool { return b.onLock("2591") })
	if b.onLock("2580") || made.Load() {
		t.Error("the code was recreated or duplicated")
	}
}

// Only consecutive failures of a lock count, because the backoff grows with them.
func TestNoCodeList_OldFailuresDoNotCount(t *testing.T) {
	t.Parallel()
	b, s := startShut(t, options{profile: "august"})
	var failing atomic.Bool
	s.meets(func(r *http.Request) (*http.Response, error) {
		if failing.Load() && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, b.lock) {
			return says(r, http.StatusServiceUnavailable, `{"error_code":"SERVICE_UNAVAILABLE","message":"later"}`), nil
		}
		return nil, nil
	})
	failures := func() int { return byHand{b}.look().Failures }
	for _, pin := range []string{"2580", "2591"} {
		failing.Store(true)
		_, a := b.create(pin)
		b.until("the device fails", func() bool { return failures() > 0 })
		failing.Store(false)
		b.succeeded(a)
		b.until("the failures are reset", func() bool { return failures() == 0 })
	}
}
