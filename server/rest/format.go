package rest

import (
	"net/mail"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// format is a string format that requests are checked for. The check returns a message, or an empty string.
type format struct {
	problem func(string) string
	// domain reports whether the domain checks the same with an error type of its own. The edge then only adds it
	// to other issues.
	domain bool
}

// formats are keyed by their names in the contract. Their messages are those of zod, if zod has one.
var formats = map[string]format{
	"uuid":         {problem: unless(isUUID, "Invalid uuid")},
	"date-time":    {problem: unless(isDateTime, "Invalid datetime")},
	"uri":          {problem: unless(isURL, "Invalid url")},
	"email":        {problem: unless(isEmail, "Invalid email")},
	"timestamp":    {problem: messageOf(domain.CheckTime)},
	"name":         {problem: messageOf(domain.CheckName)},
	"phone-number": {problem: messageOf(acs.CheckPhone)},
	"daily-time":   {problem: messageOf(noise.CheckTime)},
	"webhook-url":  {problem: messageOf(webhook.CheckWebhookURL)},
	"event-type":   {problem: messageOf(webhook.CheckEventType), domain: true},
}

func unless(valid func(string) bool, message string) func(string) string {
	return func(s string) string {
		if valid(s) {
			return ""
		}
		return message
	}
}

// messageOf turns a check of the domain into a format, so that its errors are reported with all others.
func messageOf(check func(string) *domain.Error) func(string) string {
	return func(s string) string {
		if err := check(s); err != nil {
			return err.Message
		}
		return ""
	}
}

// isUUID accepts only the plain form. The parser would also accept braces, a URN and missing hyphens.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// isDateTime accepts what time.Time decodes from JSON and encodes in UTC, so that a checked request always decodes.
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
	return err == nil && a.Address == s // without a display name
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && u.Host != ""
}
