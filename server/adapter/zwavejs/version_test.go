package zwavejs

import (
	"strings"
	"testing"
)

func TestOfAVersionTheBeginningIsKept(t *testing.T) {
	t.Parallel()
	if got := short("3.10.2"); got != "3.10.2" {
		t.Errorf("got %q", got)
	}
	if got := short(strings.Repeat("1", 15<<20)); got != strings.Repeat("1", 100) {
		t.Errorf("%d bytes", len(got))
	}
}
