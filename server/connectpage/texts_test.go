package connectpage

import (
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/login"
)

func TestSecretsAreNotShownAgain(t *testing.T) {
	t.Parallel()
	for entered, want := range map[string]string{
		"ws://gateway:3000":         "ws://gateway:3000",
		"ws://u:hunter2@gateway":    "ws://gateway",
		"ws://u:hun/ter2@gateway/x": "ws://gateway/x",
		"ws://u:hunter2@[::1":       "ws://[::1",
		"u:hunter2@gateway":         "",
	} {
		if got := fieldValue(login.Field{Kind: "url", Value: "ignored"}, entered); got != want {
			t.Errorf("%s: %q, want %q", entered, got, want)
		}
	}
	if got := fieldValue(login.Field{Kind: "password"}, "hunter2"); got != "" {
		t.Error(got)
	}
	if got := fieldValue(login.Field{Kind: "url", Value: "ws://"}, ""); got != "ws://" {
		t.Error(got)
	}
}

func TestTexts_NameProducts(t *testing.T) {
	t.Parallel()
	lock, thermostat, system := Vendor{}, Vendor{Products: "thermostats"}, Vendor{Products: "access systems"}
	for _, c := range []struct {
		vendors        []Vendor
		name, question string
	}{
		{nil, "locks", "Which brand is your lock?"},
		{[]Vendor{lock, lock}, "locks", "Which brand is your lock?"},
		{[]Vendor{thermostat}, "thermostats", "Which brand is your thermostat?"},
		{[]Vendor{lock, system}, "locks or access systems", "Which brand do you use?"},
		{[]Vendor{lock, thermostat, system}, "locks, thermostats, or access systems", "Which brand do you use?"},
	} {
		if name, asked := productNames(c.vendors...), question(c.vendors...); name != c.name || asked != c.question {
			t.Errorf("%q, %q, want %q, %q", name, asked, c.name, c.question)
		}
	}
	if got := purpose(thermostat); got != "will see the thermostats of this account and change their settings." {
		t.Error(got)
	}
}
