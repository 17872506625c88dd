package api

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
)

const redacted = "(hidden)"

// Redact replaces secrets in a text. A PIN is replaced only as a whole word, not inside a longer number.
func Redact(text string, secrets ...string) string {
	for _, secret := range secrets {
		switch {
		case len(secret) < 4:
		case strings.Trim(secret, "0123456789") == "":
			text = regexp.MustCompile(`\b`+secret+`\b`).ReplaceAllString(text, redacted)
		default:
			text = strings.ReplaceAll(text, secret, redacted)
		}
	}
	return text
}

// redactRequest removes the credential and the PIN of a request from a text about its response.
func redactRequest(req *http.Request, text string) string {
	if req == nil {
		return text
	}
	secrets := []string{strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")}
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			var sent struct{ Code string }
			if content, err := io.ReadAll(body); err == nil && json.Unmarshal(content, &sent) == nil {
				secrets = append(secrets, sent.Code)
			}
		}
	}
	return Redact(text, secrets...)
}
