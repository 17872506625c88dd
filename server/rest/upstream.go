package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// viaHeader names the workspaces that a request of another server comes from (package adapter/seam).
const viaHeader = "Device-Access-Via"

// upstreamAdapter is the adapter of accounts whose vendor is a server of this API. The login name of such an account is
// the upstream workspace.
const upstreamAdapter = "seam"

// maxVias is the maximum number of workspaces in viaHeader that are looked at.
const maxVias = 8

// viasOf returns the workspaces that a request comes from.
func viasOf(header http.Header) (out []string) {
	for _, via := range header.Values(viaHeader) {
		for one := range strings.SplitSeq(via, ",") {
			if id, err := uuid.Parse(strings.TrimSpace(one)); err == nil && len(out) < maxVias {
				out = append(out, id.String())
			}
		}
	}
	return out
}

// checkUpstream fails for a request to a workspace that comes from the workspace itself, or from a workspace that is
// its upstream: then each of the two would mirror the devices of the other without end. Loops of three or more
// workspaces are not recognized, because a request names only the workspace that sends it.
func (e *edge) checkUpstream(ctx context.Context, header http.Header, p domain.Principal) error {
	vias := viasOf(header)
	if len(vias) == 0 || p.WorkspaceID == uuid.Nil {
		return nil
	}
	if slices.Contains(vias, p.WorkspaceID.String()) {
		return upstreamLoop(
			"This workspace is its own upstream. Disconnect the account whose API key belongs to this " +
				"workspace, or give it the key of another workspace",
		)
	}
	if e.hasAccountOf == nil {
		return nil
	}
	found, err := e.hasAccountOf(ctx, p.WorkspaceID, upstreamAdapter, vias)
	if err == nil && found {
		return upstreamLoop(
			"This workspace and the one that sends the request are the upstream of each other. Disconnect " +
				"one of the two accounts",
		)
	}
	return err
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

func upstreamLoop(message string) *failure {
	return &failure{status: http.StatusLoopDetected, kind: "upstream_loop", message: message}
}
