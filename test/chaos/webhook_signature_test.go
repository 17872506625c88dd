package chaos_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// wrongWith returns what is wrong with a message: it must have a signature of the endpoint's secret as in Standard
// Webhooks, and contain the event of its id.
func wrongWith(secret string, header http.Header, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return fmt.Errorf("the secret is no base64")
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", header.Get("webhook-id"), header.Get("webhook-timestamp"), body)
	if !slices.Contains(
		strings.Fields(header.Get("webhook-signature")),
		"v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	) {
		return fmt.Errorf("no signature is that of the endpoint's secret")
	}
	var event struct {
		ID string `json:"event_id"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return fmt.Errorf("it carries no event: %w", err)
	}
	if event.ID != header.Get("webhook-id") {
		return fmt.Errorf("it carries the event %q", event.ID)
	}
	return nil
}

func TestWrongWith(t *testing.T) {
	t.Parallel()
	sign := func(key, id, signed string) http.Header {
		mac := hmac.New(sha256.New, []byte(key))
		fmt.Fprintf(mac, "%s.1.%s", id, signed)
		h := http.Header{}
		h.Set("webhook-id", id)
		h.Set("webhook-timestamp", "1")
		h.Set("webhook-signature", "v1,b3RoZXI= v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		return h
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("key"))
	const body, other = `{"event_id":"one"}`, `{"event_id":"other"}`
	for name, c := range map[string]struct {
		header http.Header
		body   string
		good   bool
	}{
		"good":             {sign("key", "one", body), body, true},
		"another secret":   {sign("other", "one", body), body, false},
		"another body":     {sign("key", "one", body), other, false},
		"another event":    {sign("key", "one", other), other, false},
		"without anything": {http.Header{}, body, false},
	} {
		if err := wrongWith(secret, c.header, []byte(c.body)); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
