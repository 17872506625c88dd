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
