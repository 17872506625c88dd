package provider

import (
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

func lockWith(lengths []int, constraints ...string) *api.Device {
	lock := &api.Device{
		DeviceID:    "d1",
		DisplayName: "Front Door",
		Properties:  api.DeviceProperties{SupportedCodeLengths: lengths},
	}
	for _, constraint := range constraints {
		lock.Properties.CodeConstraints = append(
			lock.Properties.CodeConstraints,
			api.CodeConstraint{ConstraintType: constraint},
		)
	}
	return lock
}

func TestSharedPINFitsAllLocks(t *testing.T) {
	cases := map[string]struct {
		locks   []*api.Device
		length  int
		without string
		problem string
	}{
		"nothing known": {[]*api.Device{lockWith(nil)}, 4, "", ""},
		"the shortest":  {[]*api.Device{lockWith([]int{4, 5, 6, 7}), lockWith([]int{8, 7, 6})}, 6, "", ""},
		"no zeros": {
			[]*api.Device{lockWith([]int{6}, "no_zeros"), lockWith(nil, "cannot_contain_0789")},
			6,
			"0789",
			"",
		},
		"some other rule": {[]*api.Device{lockWith([]int{6}, "no_sevens_on_sundays")}, 6, "", ""},
		"nothing shared": {
			[]*api.Device{lockWith([]int{4}), lockWith([]int{6})},
			0,
			"",
			`"Front Door" (d1) accepts [4]; "Front Door" (d1) accepts [6]. Declare a shared code for each`,
		},
		"makes them alone": {
			[]*api.Device{lockWith([]int{6}, "cannot_specify_pin_code")},
			0,
			"",
			"chooses its PINs itself",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rules := pinRules{digits: "0123456789"}
			var err error
			for _, lock := range c.locks {
				if err = rules.add(lock); err != nil {
					break
				}
			}
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("fails with %v", err)
				}
				return
			}
			for range 200 {
				pin, err := rules.choose()
				if err != nil || len(pin) != c.length || c.without != "" && strings.ContainsAny(pin, c.without) {
					t.Fatalf("%q, %v", pin, err)
				}
			}
		})
	}
}

func TestSharedPINIsFreeAndNotEasilyGuessed(t *testing.T) {
	rules := pinRules{digits: "0123456789", taken: []string{"9051", "460718"}, prefix: true}
	for pin, want := range map[string]bool{
		"3917": true, "9051": false, "905173": false, "4607": false, "3456": false, "6543": false, "5553": false, "5533": false, "1273": false, "7121": true,
	} {
		if got := rules.allow(pin); got != want {
			t.Errorf("%s is allowed: %v", pin, got)
		}
	}
	rules.digits = "1"
	if _, err := rules.choose(); err == nil {
		t.Error("a PIN of ones only was chosen")
	}
}
