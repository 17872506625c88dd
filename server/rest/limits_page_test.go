package rest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/phone"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/ratelimit"
)

func TestThePageTellsTheLimitsOfRequests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../server/docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		fmt.Sprintf("| a body | %d MiB |", maxBody>>20),
		fmt.Sprintf("| JSON in a body | %d values, %d deep |", maxValues, maxDepth),
		fmt.Sprintf("| errors reported for one request | %d |", maxIssues),
		fmt.Sprintf("| requests with `sync`, and simulations, that wait | %d, of one credential %d |", maxWaits, maxWaitsPerCredential),
		fmt.Sprintf("| requests with one `%s` | %d in %.0f to %.0f s |", keyHeader, ratelimit.MaxRepeats, ratelimit.RepeatsWindow.Seconds(), 2*ratelimit.RepeatsWindow.Seconds()),
		fmt.Sprintf("| workspaces that one credential creates or resets | %d a minute | `--workspaces-per-minute` | 429 with Retry-After; %[1]d at once.", ratelimit.WorkspacesPerMinute),
		fmt.Sprintf("| workspaces of a credential that creates them | %d |", account.MaxWorkspaces),
		fmt.Sprintf("| phones of a user identity | %d |", phone.MaxPhones),
		fmt.Sprintf("| unused connect webviews that such sessions created | about %d per workspace |", account.UnclaimedWebviews),
		fmt.Sprintf("| unused connect webviews that one client session created | %d |", auth.MaxSessionWebviews),
		fmt.Sprintf("| webviews in a client session's `connect_webview_ids` | %d |", auth.MaxSessionWebviews),
		fmt.Sprintf("| webviews of client sessions with a login to one account | %d |", account.MaxAccountWebviews),
		fmt.Sprintf("| `custom_metadata` that a client session stores on a webview or a device | %d bytes of JSON |", domain.MaxSessionMetadata),
		fmt.Sprintf("| stored answers of publishable keys, and of their sessions without access | about %d per workspace |", idempotency.PublicKeys),
		fmt.Sprintf("| audit entries of publishable keys, and of their sessions without access | %d per workspace and day |", audit.PublicEntries),
		fmt.Sprintf("| requests with client sessions and publishable keys of one address | %d a second, burst %d | `--session-requests-per-second` |", ratelimit.SessionRequestsPerSecond, 10*ratelimit.SessionRequestsPerSecond),
	} {
		if !strings.Contains(string(page), line) {
			t.Errorf("server/docs/limits.md does not say %q", line)
		}
	}
}

func TestFewRequestsWaitAtOnce(t *testing.T) {
	t.Parallel()
	var w waits
	for n := range maxWaitsPerCredential + 1 {
		if got := w.enter(workspaceA); got != (n < maxWaitsPerCredential) {
			t.Fatalf("the wait %d of a credential: %v", n, got)
		}
	}
	if !w.enter(workspaceB) {
		t.Error("another may not wait")
	}
	w.leave(workspaceA)
	if !w.enter(workspaceA) {
		t.Error("no request may wait after one that has ended")
	}
}
