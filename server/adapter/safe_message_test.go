package adapter_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

func TestSafeMessage(t *testing.T) {
	t.Parallel()
	const secret = "a-very-secret-token"
	digits := regexp.MustCompile(`[0-9]{4,}`)
	for name, test := range map[string]struct{ message, want string }{
		"unchanged":                  {"the door is ajar", "the door is ajar"},
		"lines":                      {"one\r\ntwo\x00", "one  two "},
		"secrets":                    {"PIN 1234 of " + secret, "PIN **** of ****"},
		"long":                       {strings.Repeat("é", 300), strings.Repeat("é", 200) + "…"},
		"a secret where it is cut":   {strings.Repeat("1", 4<<10-len("a-very")) + secret, "****"},
		"nothing but what is hidden": {strings.Repeat("1", 1<<20), "****"},
	} {
		if got := adapter.SafeMessage(test.message, secret, digits); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := adapter.SafeMessage("a", ""); got != "a" {
		t.Errorf("without a secret: %q", got)
	}
}
