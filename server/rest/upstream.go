package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// viaHeader names the workspaces that a request of another server comes from (package adapter/seam).
const viaHeader = "Device-Access-Via"

// isLoop reports whether a request to a workspace comes from the workspace itself.
func isLoop(header http.Header, p domain.Principal) bool {
	own := p.WorkspaceID.String()
	return slices.ContainsFunc(header.Values(viaHeader), func(via string) bool {
		return slices.ContainsFunc(strings.Split(via, ","), func(one string) bool {
			return strings.EqualFold(strings.TrimSpace(one), own)
		})
	})
}

// upstreamID returns the reference of a code if it is an identifier of this API: a UUID. No other vendor has such
// references, and a reference of another kind may be secret.
func upstreamID(ref string) string {
	const length = 36
	if _, err := uuid.Parse(ref); err != nil || len(ref) != length {
		return ""
	}
	return ref
}

func upstreamLoop() *failure {
	return &failure{
		status: http.StatusLoopDetected,
		kind:   "upstream_loop",
		message: "This workspace is its own upstream. Disconnect the account whose API key belongs to this workspace, " +
			"or give it the key of another workspace",
	}
}
