package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// sign returns the signatures of Standard Webhooks, version 1: one per secret, separated by spaces.
// A secret is "whsec_" followed by base64. Empty secrets are skipped.
func sign(id string, at time.Time, body []byte, secrets ...string) (string, error) {
	var signatures []string
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			return "", fmt.Errorf("read the webhook's secret: %w", err)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signatures, " "), nil
}

// headers returns the headers of Standard Webhooks, under the names of the standard and those of
// Svix. Receivers look for either.
func headers(id string, at time.Time, signature string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"webhook-", "svix-"} {
		out[name+"id"], out[name+"timestamp"], out[name+"signature"] = id, strconv.FormatInt(at.Unix(), 10), signature
	}
	return out
}
