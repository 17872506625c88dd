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
	lock, thermostat := Vendor{Kinds: []string{"lock"}}, Vendor{Kinds: []string{"thermostat"}}
	for name, c := range map[string]struct {
		vendors []Vendor
		want    string
	}{
		"no vendor":       {nil, "Which brand is your lock?"},
		"locks":           {[]Vendor{lock, {}}, "Which brand is your lock?"},
		"an unknown kind": {[]Vendor{{Kinds: []string{"door"}}}, "Which brand is your lock?"},
		"thermostats":     {[]Vendor{thermostat}, "Which brand is your thermostat?"},
		"access systems":  {[]Vendor{{Kinds: []string{"access_control"}}}, "Which brand is your access system?"},
		"noise sensors":   {[]Vendor{{Kinds: []string{"noise_sensor"}}}, "Which brand is your noise sensor?"},
		"several vendors": {[]Vendor{lock, thermostat, lock}, "Which brand do you use?"},
		"several kinds":   {[]Vendor{{Kinds: []string{"lock", "thermostat"}}}, "Which brand do you use?"},
	} {
		if got := productsOf(c.vendors...).question; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
