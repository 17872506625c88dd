package rest

import (
	"net/url"
	"time"

	"github.com/google/uuid"
)

// formats are the string formats that requests are checked for, with the messages that zod has for them.
var formats = map[string]struct {
	valid   func(string) bool
	message string
}{
	"uuid":      {isUUID, "Invalid uuid"},
	"date-time": {isDateTime, "Invalid datetime"},
	"uri":       {isURL, "Invalid url"},
}

// isUUID accepts the plain form only; the parser would also take braces, a URN and no hyphens.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// isDateTime accepts what time.Time reads from JSON, so that a checked request always decodes.
func isDateTime(s string) bool { return new(time.Time).UnmarshalText([]byte(s)) == nil }

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && u.Host != ""
}
