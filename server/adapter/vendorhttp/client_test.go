package vendorhttp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// budget records what a client reports.
type budget struct {
	taken   int
	refused time.Duration
	empty   error
}

func (b *budget) Take(context.Context) error                          { b.taken++; return b.empty }
func (b *budget) Refused(_ context.Context, retryAfter time.Duration) { b.refused = retryAfter }
func (b *budget) ClientRefused(context.Context, time.Duration)        {}

func clientOf(base string, b adapter.Budget) *vendorhttp.Client {
	return &vendorhttp.Client{
		Adapter: "acme",
		Base:    base,
		HTTP:    vendorhttp.New(adapter.Env{}),
		Log:     slog.New(slog.DiscardHandler),
		Budget:  b,
		Secret:  "planted-token",
		Authorize: func(_ context.Context, req *http.Request) error {
			req.Header.Set("Authorization", "Bearer planted-token")
			return nil
		},
	}
}

// Each end of a call has one class, which depends on whether the vendor may have done something.
func TestClient_ClassifiesEnds(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		vendor      http.HandlerFunc
		read, write adapter.Class
	}{
		"unauthorized":    {status(401), adapter.AuthRevoked, adapter.AuthRevoked},
		"not implemented": {status(501), adapter.NotSupported, adapter.NotSupported},
		"not found":       {status(404), adapter.Transient, adapter.Transient},
		"broken":          {status(500), adapter.Transient, adapter.Unconfirmed},
		"bad gateway":     {status(502), adapter.Transient, adapter.Unconfirmed},
		"proxy timeout":   {status(524), adapter.Transient, adapter.Unconfirmed},
		"too many":        {status(429), adapter.Transient, adapter.Transient},
		"a redirect": {
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
			adapter.Transient, adapter.Transient,
		},
		"no JSON": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>81428142") },
			adapter.Transient, adapter.Unconfirmed,
		},
		"no response": {
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			adapter.Transient, adapter.Unconfirmed,
		},
		"another protocol": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Upgrade", "acme")
				w.Header().Set("Connection", "Upgrade")
				w.WriteHeader(http.StatusSwitchingProtocols)
			},
			adapter.Transient, adapter.Unconfirmed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(c.vendor)
			t.Cleanup(s.Close)
			b := &budget{}
			client := clientOf(s.URL, b)
			var out map[string]any
			for _, call := range []vendorhttp.Call{
				{Path: "/locks"},
				{Method: http.MethodPost, Path: "/locks", JSON: map[string]string{"pin": "81428142"}, Write: true},
			} {
				err := client.DoJSON(t.Context(), call, &out, nil)
				want := c.read
				if call.Write {
					want = c.write
				}
				if err == nil || adapter.ClassOf(err) != want || strings.Contains(err.Error(), "8142") {
					t.Errorf("write %t: %v, want %s", call.Write, err, want)
				}
			}
			if b.taken != 2 {
				t.Errorf("the budget counts %d calls", b.taken)
			}
		})
	}
}

// A vendor that is not there has done nothing.
func TestClient_UnreachableVendorDidNothing(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	err := clientOf(
		s.URL,
		nil,
	).DoJSON(t.Context(), vendorhttp.Call{Method: http.MethodPut, Path: "/", Write: true}, nil, nil)
	if adapter.ClassOf(err) != adapter.GatewayDown {
		t.Error(err)
	}
}

// A request carries what the call says, and messages of the vendor show no secret.
func TestClient_SendsCalls(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if r.Header.Get("Authorization") != "Bearer planted-token" || r.URL.Query().Get("page") != "2" ||
			r.PostForm.Get("name") != "Front door" {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, `{"ok":true}`)
	}))
	t.Cleanup(s.Close)
	client := clientOf(s.URL, nil)
	var out struct{ OK bool }
	err := client.DoJSON(t.Context(), vendorhttp.Call{
		Method: http.MethodPost,
		Path:   "/locks",
		Query:  url.Values{"page": {"2"}},
		Form:   url.Values{"name": {"Front door"}},
		Write:  true,
	}, &out, nil)
	if err != nil || !out.OK {
		t.Errorf("%v, %+v", err, out)
	}
	fails := func(r vendorhttp.Response) error { return r.Failure(adapter.Invalid, "PIN 81428142 of planted-token") }
	if err = client.DoJSON(t.Context(), vendorhttp.Call{Path: "/locks"}, nil, fails); err == nil ||
		err.Error() != "invalid: PIN **** of ****" {
		t.Error(err)
	}
}

// An empty budget sends nothing, and a refusal for too many calls reaches the budget.
func TestClient_KeepsToBudget(t *testing.T) {
	t.Parallel()
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(s.Close)
	b := &budget{}
	err := clientOf(s.URL, b).DoJSON(t.Context(), vendorhttp.Call{Path: "/"}, nil, nil)
	if e := adapter.AsError(err); e == nil || e.RetryAfter != 90*time.Second || b.refused != 90*time.Second {
		t.Errorf("%v, the budget waits %s", err, b.refused)
	}
	b.empty = adapter.Errorf(adapter.Transient, "no calls left")
	if err := clientOf(
		s.URL,
		b,
	).DoJSON(t.Context(), vendorhttp.Call{Path: "/"}, nil, nil); !errors.Is(err, b.empty) ||
		calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// A vendor that limits calls without a usable Retry-After is left alone for a minute.
func TestClient_LimitWithoutRetryAfter(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"", "0", "soon", "-5"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		b := &budget{}
		err := clientOf(s.URL, b).DoJSON(t.Context(), vendorhttp.Call{Path: "/"}, nil, nil)
		if e := adapter.AsError(err); e == nil || e.RetryAfter != time.Minute || b.refused != time.Minute {
			t.Errorf("Retry-After %q: %v, the budget waits %s", header, err, b.refused)
		}
		s.Close()
	}
}

// A vendor that quotes a request in its message shows none of its credentials, also where a message is cut.
func TestClient_MasksQuotedRequests(t *testing.T) {
	t.Parallel()
	const token = "planted/query+token"
	for name, header := range map[string]string{
		"bearer": "Bearer planted/header+token",
		"basic":  "Basic cGxhbnRlZC91c2VyOnBsYW50ZWQ=",
		"other":  "planted/header+token",
	} {
		for _, before := range []int{0, 180, 4090} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_ = r.ParseForm()
				fmt.Fprint(w, strings.Repeat(".", before), r.Header.Get("Authorization"), " ", r.URL.RawQuery, " ",
					r.Form.Get("accessToken"), " ", r.Form.Get("client_secret"))
			}))
			client := clientOf(s.URL, nil)
			client.Authorize = func(_ context.Context, req *http.Request) error {
				req.Header.Set("Authorization", header)
				return nil
			}
			call := vendorhttp.Call{
				Method: http.MethodPost,
				Path:   "/",
				Query:  url.Values{"accessToken": {token}, "page": {"2"}},
				Form:   url.Values{"client_secret": {"planted/secret"}},
				Write:  true,
			}
			err := client.DoJSON(t.Context(), call, nil, func(r vendorhttp.Response) error {
				return client.Refusal(call, r, string(r.Data))
			})
			if text := fmt.Sprint(err); !strings.Contains(text, "****") && before == 0 ||
				strings.Contains(text, "plant") || strings.Contains(text, "cGxhb") {
				t.Errorf("%s after %d characters: %s", name, before, text)
			}
			s.Close()
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"":                              0,
		"5":                             5 * time.Second,
		"-5":                            0,
		"999999":                        time.Hour,
		"soon":                          0,
		"Sat, 28 Nov 2026 10:00:30 GMT": 30 * time.Second,
		"Sat, 28 Nov 2026 09:00:00 GMT": 0,
	} {
		h := http.Header{"Date": {"Sat, 28 Nov 2026 10:00:00 GMT"}, "Retry-After": {header}}
		if got := vendorhttp.RetryAfter(h); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
