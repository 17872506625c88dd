package auth

import (
	"strings"
	"testing"
)

func TestTokensKeepOutOfEachOthersWay(t *testing.T) {
	t.Parallel()
	for range 2000 {
		short := notReserved()
		for _, prefix := range []string{"at", "cst", "pk", "test"} {
			if strings.HasPrefix(short, prefix) {
				t.Fatalf("an API key would begin with seam_%s", prefix)
			}
		}
	}
}
