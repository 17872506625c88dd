package rest

import (
	"net/mail"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
)

// format is a string format that requests are checked for: what is wrong with a text, empty when nothing is.
type format struct {
	problem func(string) string
	// domain is whether package access says the same, with an error type of its own: the edge only adds it to
	// what else is wrong.
	domain bool
}

// formats are by the name that the contract has for them. Where zod has a message, it is zod's.
var formats = map[string]format{
	"uuid":         {problem: unless(isUUID, "Invalid uuid")},
	"date-time":    {problem: unless(isDateTime, "Invalid datetime")},
	"uri":          {problem: unless(isURL, "Invalid url")},
	"email":        {problem: unless(isEmail, "Invalid email")},
	"timestamp":    {problem: messageOf(access.CheckTime)},
	"phone-number": {problem: messageOf(acs.CheckPhone)},
	"webhook-url":  {problem: messageOf(access.CheckWebhookURL)},
	"event-type":   {problem: messageOf(access.CheckEventType), domain: true},
}

func unless(valid func(string) bool, message string) func(string) string {
	return func(s string) string {
		if valid(s) {
			return ""
		}
		return message
	}
}

// messageOf lets the domain judge, so that what it refuses is reported along with everything else.
func messageOf(check func(string) *access.Error) func(string) string {
	return func(s string) string {
		if err := check(s); err != nil {
			return err.Message
		}
		return ""
	}
}

// isUUID accepts the plain form only; the parser would also take braces, a URN and no hyphens.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// isDateTime accepts what time.Time reads from JSON, so that a checked request always decodes, and can write in UTC: a
// time that is kept is told again.
func isDateTime(s string) bool {
	var t time.Time
	if t.UnmarshalText([]byte(s)) != nil {
		return false
	}
	year := t.UTC().Year()
	return year >= 1 && year <= 9999
}

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s // without a name
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && u.Host != ""
}
