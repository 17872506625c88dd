package registry_test

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // as a vendor
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/registry"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// planted begins all credentials of this test. A message that is cut may show its beginning only.
const planted = "planted-"

// echo is a vendor that refuses each request with a message that quotes one value of it.
type echo struct {
	status, value, before int
	quoted                *atomic.Int64 // credentials so far
}

// RoundTrip implements http.RoundTripper.
func (e echo) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := []string{r.Header.Get("Authorization")}
	values := []url.Values{r.URL.Query()}
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if form, err := url.ParseQuery(string(data)); err == nil {
			values = append(values, form)
		}
	}
	for _, all := range values {
		for name := range all {
			sent = append(sent, all.Get(name))
		}
	}
	quote := sent[e.value%len(sent)]
	if isCredential(quote) {
		e.quoted.Add(1)
	}
	text := strings.Repeat(".", e.before) + quote
	body, err := json.Marshal(map[string]any{
		"errcode":       -9999, // TTLock
		"errmsg":        text,
		"success":       false, // Tedee
		"errorMessages": []string{text},
		"description":   text, // Nuki
		"error":         map[string]string{"type": text, "message": text},
		"message":       text,
		"code":          text,
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: e.status,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(body)),
		Request:    r,
	}, nil
}

func passwordMD5() string {
	sum := md5.Sum([]byte(planted + "password")) //nolint:gosec // as a vendor
	return hex.EncodeToString(sum[:])
}

func isCredential(text string) bool {
	return strings.Contains(text, planted[:5]) || strings.Contains(text, passwordMD5()[:8])
}

// plantedLogin holds tokens, which are renewed at once if they have expired.
type plantedLogin struct{ expired bool }

func (l plantedLogin) Load(_ context.Context, name string) ([]byte, error) {
	if name != adapter.CredentialsSecret {
		return nil, nil
	}
	t := adapter.Tokens{Access: planted + "access", Refresh: planted + "refresh"}
	if l.expired {
		t.ExpiresAt = time.Unix(1, 0)
	}
	return json.Marshal(t)
}

func (plantedLogin) Store(context.Context, string, []byte) error { return nil }

func (plantedLogin) Rotate(ctx context.Context, _ string, seen []byte, renew adapter.Renew) ([]byte, error) {
	return renew(ctx, seen)
}

// uses are what an account does with its credentials.
func uses(t *testing.T, v adapter.Vendor) map[string]func(adapter.Env) error {
	t.Helper()
	opened := func(isOAuth, expired bool) func(adapter.Env) error {
		return func(env adapter.Env) error {
			config := fmt.Sprintf(`{"base_url":"https://vendor.example","url":"https://vendor.example","token":%q,
				"personal_key":%q,"api_key":%q,"oauth":%t}`,
				planted+"token", "key."+planted+"key", planted+"api", isOAuth)
			c := v.New()
			if err := json.Unmarshal([]byte(config), c); err != nil {
				t.Fatal(err)
			}
			env.Secrets = plantedLogin{expired}
			return readOnce(t.Context(), c, env)
		}
	}
	out := map[string]func(adapter.Env) error{
		"open":             opened(false, false),
		"open with OAuth":  opened(true, false),
		"renew the tokens": opened(true, true),
	}
	if v.Login == nil {
		return out
	}
	check := func(c adapter.Connection, err error) func(adapter.Env) error {
		return func(env adapter.Env) error {
			if err == nil {
				_, err = c.Check(t.Context(), env)
			}
			return err
		}
	}
	if len(v.Login.Fields) > 0 {
		entered := map[string]string{}
		for _, f := range v.Login.Fields {
			if entered[f.Name] = "entered"; f.Kind == "password" {
				entered[f.Name] = planted + f.Name
			}
		}
		out["log in"] = check(v.Login.Connect(entered))
	}
	if v.Login.OAuth != nil {
		out["log in with OAuth"] = check(v.Login.OAuth.Connect(adapter.Tokens{Access: planted + "access"}))
	}
	return out
}

// No error and no log shows a credential, also if the vendor quotes the request that it refuses.
func TestAll_ErrorsShowNoCredential(t *testing.T) {
	t.Parallel()
	for _, v := range registry.All() {
		if _, gateway := v.New().(adapter.Stranger); gateway {
			continue
		}
		t.Run(v.Adapter, func(t *testing.T) {
			t.Parallel()
			for what := range uses(t, v) {
				var quoted atomic.Int64
				for _, status := range []int{200, 400, 401, 403, 404, 409, 422, 429, 500} {
					for value := range 8 {
						for _, before := range []int{0, 190} {
							var log testenv.Buffer
							e := echo{status, value, before, &quoted}
							err := uses(t, v)[what](adapter.Env{
								Log: slog.New(
									slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}),
								),
								Budget:    adapter.Unlimited{},
								Client:    adapter.Client{ID: "client", Secret: planted + "secret"},
								Transport: func(http.RoundTripper) http.RoundTripper { return e },
							})
							if text := fmt.Sprint(err) + log.String(); isCredential(text) {
								t.Fatalf("%s, status %d: %s", what, status, text)
							}
						}
					}
				}
				if quoted.Load() == 0 {
					t.Errorf("%s sends no credential", what)
				}
			}
		})
	}
}
