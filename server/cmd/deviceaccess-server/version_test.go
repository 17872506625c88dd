package main

import (
	"runtime/debug"
	"testing"
)

// A program that was not built as a release is of the version of its module, where there is one.
func TestVersionIsThatOfTheModule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set, module, want string
	}{
		{"1.2.3", "v0.9.0", "1.2.3"},
		{"dev", "v0.1.0", "0.1.0"},
		{"dev", "v0.0.0-20260101000000-abcdefabcdef+dirty", "0.0.0-20260101000000-abcdefabcdef+dirty"},
		{"dev", "(devel)", "dev"},
		{"dev", "", "dev"},
	} {
		if got := versionOf(c.set, &debug.BuildInfo{Main: debug.Module{Version: c.module}}); got != c.want {
			t.Errorf("%q with %q is %q, want %q", c.set, c.module, got, c.want)
		}
	}
	if got := versionOf("dev", nil); got != "dev" {
		t.Errorf("without a module it is %q", got)
	}
}
