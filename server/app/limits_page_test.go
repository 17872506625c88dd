package app

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
)

func TestLimitsPage_MatchesConstants(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../server/docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		fmt.Sprintf("| connections | %d | `--client-connections` |", admission.DefaultConnections),
		fmt.Sprintf("| a header | %d kB, within %.0f s |", maxHeader>>10, headerTimeout.Seconds()),
		fmt.Sprintf("| a request | within %.0f s |", requestTimeout.Seconds()),
		fmt.Sprintf("| bytes being received or not yet read | %d MiB |", admission.DefaultHeldBytes>>20),
		fmt.Sprintf("| unread HTTP/2 bodies of one connection | %d KiB |", http2Buffer>>10),
		fmt.Sprintf("| an answer | the next 64 kB within %.0f s |", admission.WriteStallTimeout.Seconds()),
		fmt.Sprintf("| requests worked on at once | %d |", admission.DefaultSlots),
		fmt.Sprintf("| idle connections | %.0f min |", idleTimeout.Minutes()),
		fmt.Sprintf("| an answer's header | %d kB |", adapter.MaxResponseHeader>>10),
		fmt.Sprintf("| lists in an answer | %d elements", adapter.MaxListElements),
		fmt.Sprintf("until the runtime holds %d MiB", memoryLimit>>20),
	} {
		if !strings.Contains(string(page), line) {
			t.Errorf("server/docs/limits.md does not say %q", line)
		}
	}
}
