package secretscan

import (
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	token  = "seam_test1234_abcdefghijklmnopqrstuvwx"
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// asked returns a ledger that has seen some requests.
func asked(t *testing.T) *Ledger {
	t.Helper()
	l := &Ledger{}
	s := httptest.NewServer(l.Watch(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			w.WriteHeader(http.StatusBadRequest)
		}
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, `{"webhook":{"secret":"`+secret+`","asked":`+string(body)+`}}`)
	})))
	t.Cleanup(s.Close)
	for path, body := range map[string]string{
		"/made":                        `{"codes":[{"code":"48151623"},{"code":"1628"}]}`,
		"/refused":                     `{"code":"90909090"}`,
		"/refused?n":                   `{"code":31313131}`,
		"/refused?cut":                 `{"name":"x","code":"21212121`,
		"/later?code=77665544":         `{}`,
		"/connect/tokenOfAPage0123":    ``,
		"/webviews":                    `{"url":"https://x.example/connect/tokenOfAPage0123","custom_redirect_url":"https://guest.example/connect/done"}`,
		"/vendors/1/secretOfAVendor01": ``,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("X-Api-Key", "key-of-another-product")
		req.Header.Set("Webhook-Signature", "v1,c2lnbmVkT25jZQ== v1,c2lnbmVkVHdpY2U=")
		req.Header.Set("X-Acme-Signature-Sha256", "5369676e6564")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	return l
}

func TestFind(t *testing.T) {
	t.Parallel()
	l := asked(t)
	for text, n := range map[string]int{
		"code=48151623 of the guest":                                     1,
		`{"pin":"48151623"}`:                                             1,
		"{\\\"pin\\\":\\\"1628\\\"}":                                     1,
		"values ('1628', 1)":                                             1,
		"Authorization: Bearer " + token:                                 1,
		"the secret is " + secret + " and " + token:                      2,
		`'\x` + hex.EncodeToString([]byte(secret)) + "'":                 1,
		base64.StdEncoding.EncodeToString([]byte(secret)):                1,
		"page_cursor of ?code=77665544":                                  1,
		"insert ('\\x" + hex.EncodeToString([]byte("1628")):              0,
		"insert ('\\x" + hex.EncodeToString([]byte("1628")) + "')":       1,
		"insert ('\\x00" + hex.EncodeToString([]byte("48151623")) + "')": 1,
		base64.StdEncoding.EncodeToString([]byte("48151623")):            1,
		"access_code=1628 and PIN 1628":                                  1,
		"code=16281, zipcode=1628.5":                                     0,
		"GET /connect/tokenOfAPage0123/waiting":                          1,
		"secretOfAVendor01":                                              1,
		"https://guest.example/connect/done":                             0,
		"at 10:00:00.48151623, took 1628 ms at :1628":                    0,
		"0190-48151623-4815162300":                                       0,
		"was refused: 90909090":                                          1,
		"was no string: 31313131":                                        1,
		"was cut off: 21212121":                                          1,
		"X-Api-Key: key-of-another-product":                              1,
		"signed with c2lnbmVkT25jZQ== and c2lnbmVkVHdpY2U=":              2,
		"signed with 5369676e6564":                                       1,
		"":                                                               0,
	} {
		if found := l.Find([]byte(text)); len(found) != n {
			t.Errorf("%q: found %q, want %d", text, found, n)
		}
	}
	if refusals := string(
		l.ErrorResponses(),
	); !strings.Contains(refusals, "/refused 400") ||
		strings.Contains(refusals, "/made") {
		t.Errorf("the refusals are %s", refusals)
	}
	if l.Count("code") != 6 || l.Count("credential") != 1 || l.Count("secret") != 1 {
		t.Errorf(
			"%d codes, %d credentials and %d secrets were learned",
			l.Count("code"),
			l.Count("credential"),
			l.Count("secret"),
		)
	}
}

// Some of thousands of PINs equal other numbers by chance.
func TestFind_RandomPINsAsSeparateValues(t *testing.T) {
	t.Parallel()
	l := &Ledger{Random: true}
	for _, pin := range []string{"48151623", "061523"} {
		l.Learn("code", pin)
	}
	for text, n := range map[string]int{
		"took=48151623":          0,
		"values (48151623, 2)":   0,
		"values ('48151623', 2)": 1,
		"code=48151623":          1,
		"took=061523":            1,
		`"PIN 061523"`:           1,
	} {
		if found := l.Find([]byte(text)); len(found) != n {
			t.Errorf("%q: found %q, want %d", text, found, n)
		}
	}
}

func TestRoundTripper_LearnsRequestsAndResponses(t *testing.T) {
	t.Parallel()
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		if r.URL.Path == "/refused" {
			w.WriteHeader(http.StatusConflict)
		}
		io.WriteString(w, `{"secret":"`+secret+r.URL.Path[1:]+`"}`)
	}))
	t.Cleanup(s.Close)
	l := &Ledger{}
	client := &http.Client{Transport: l.RoundTripper(http.DefaultTransport)}
	for path, pin := range map[string]string{"/made": "48151623", "/refused": "90909090"} {
		res, err := client.Post(s.URL+path, "application/json", strings.NewReader(`{"code":"`+pin+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		received, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || got != `{"code":"`+pin+`"}` || string(received) != `{"secret":"`+secret+path[1:]+`"}` {
			t.Errorf("%s: sent as %q, received as %q, %v", path, got, received, err)
		}
		if len(l.Find([]byte("so "+pin))) != 1 {
			t.Errorf("%s: the sent PIN was not learned", path)
		}
	}
	if len(l.Find([]byte(secret+"made"))) != 1 || len(l.Find([]byte(secret+"refused"))) != 0 {
		t.Error("a granted secret was not learned, or a rejected one was")
	}
}

func TestNamesOfSecrets(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"code":                 true,
		"pin":                  true,
		"Password":             true,
		"client_session_token": true,
		"X-Api-Key":            true,
		"webhook_secret":       true,
		"error_code":           false,
		"access_code_id":       false,
		"acs_credential_id":    false,
		"next_page_cursor":     false,
		"passwords_are":        false,
		"":                     false,
	} {
		if isSecret(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestFind_HidesSecrets(t *testing.T) {
	t.Parallel()
	for _, found := range asked(t).Find([]byte("so " + secret + " is")) {
		if strings.Contains(found, secret) || !strings.Contains(found, "so <the secret> is") {
			t.Errorf("the finding is %s", found)
		}
	}
	neighbors := strings.Repeat("x", 94) + secret + "48151623" + strings.Repeat(" '1628' 48151623", 20) + token
	for _, found := range asked(t).Find([]byte(neighbors)) {
		for _, other := range []string{secret[:12], "48151623", "1628", "1623", token[:12]} {
			if strings.Contains(found, other) {
				t.Errorf("the finding contains another secret: %s", found)
			}
		}
	}
}
