package adapter_test

import (
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// A listed code is that of a creation only if all that was sent in one attempt is equal, and if it was not there before.
func TestSentCodes(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 12, 1, 10, 0, 0, 123, time.UTC)
	until := from.Add(time.Hour)
	spec := adapter.CodeSpec{PIN: "4815", Name: "Jane", StartsAt: &from, EndsAt: &until}
	renamed := adapter.CodeSpec{PIN: "4815", Name: "Joan"}
	sent := adapter.SentCodes{}.With(spec, "7").With(renamed, "7", "8").With(spec, "7", "8", "9")
	seconds, later := from.Truncate(time.Second), from.Add(time.Minute)
	jane := adapter.Code{Ref: "9", PIN: "4815", Name: "Jane", StartsAt: &seconds, EndsAt: &until}
	with := func(change func(*adapter.Code)) adapter.Code {
		c := jane
		change(&c)
		return c
	}
	for name, test := range map[string]struct {
		code adapter.Code
		want bool
	}{
		"the first attempt":        {jane, true},
		"the second attempt":       {adapter.Code{Ref: "9", PIN: "4815", Name: "Joan"}, true},
		"listed after the first":   {with(func(c *adapter.Code) { c.Ref = "8" }), true},
		"listed before":            {with(func(c *adapter.Code) { c.Ref = "7" }), false},
		"listed before the second": {adapter.Code{Ref: "8", PIN: "4815", Name: "Joan"}, false},
		"another PIN":              {with(func(c *adapter.Code) { c.PIN = "1623" }), false},
		"a hidden PIN":             {with(func(c *adapter.Code) { c.PIN = "" }), false},
		"another name":             {with(func(c *adapter.Code) { c.Name = "Neighbour" }), false},
		"another start":            {with(func(c *adapter.Code) { c.StartsAt = &later }), false},
		"no end":                   {with(func(c *adapter.Code) { c.EndsAt = nil }), false},
		"parts of two attempts":    {with(func(c *adapter.Code) { c.Name = "Joan" }), false},
	} {
		if got := sent.Has(test.code); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
	if (adapter.SentCodes{}).Has(jane) || (adapter.SentCodes{}).Has(adapter.Code{}) {
		t.Error("nothing was sent, and a code is recognized")
	}
}
