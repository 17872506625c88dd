package zwavejs

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// The gateway reads users and credentials from a lock one by one, and treats what the lock does not answer as absent:
// its lists end there without an error (zwave-js AccessControlAPI.getUsers, getAllCredentials, getCredential). The
// lock reports the next one, but the gateway does not pass that on. However, the gateway counts the unanswered
// requests of a lock. If the count has increased, a list may be incomplete.

// maxTries is the maximum number of attempts to read a complete list: each one drains the battery of the lock.
const maxTries = 3

// readComplete returns the response of endpoint.access_control during which the lock left no request unanswered.
func readComplete[T any](ctx context.Context, a *Adapter, s *session, n *node, within time.Duration, command string,
	arguments args,
) (got T, err error) {
	before, err := a.unanswered(ctx, s, n)
	if err != nil {
		return got, err
	}
	for range maxTries {
		var shown T
		if err := a.accessControl(ctx, s, n, within, command, arguments, &shown); err != nil {
			return got, err
		}
		after, err := a.unanswered(ctx, s, n)
		if err != nil || after == before {
			return shown, err
		}
		before = after
	}
	return got, adapter.Errorf(adapter.Transient, "the lock has not answered all requests about its codes, %d times",
		maxTries)
}

// unanswered returns how many requests the lock has left unanswered since the start of the gateway.
func (a *Adapter) unanswered(ctx context.Context, s *session, n *node) (int, error) {
	var got struct {
		State struct {
			Statistics struct {
				Timeouts *int `json:"timeoutResponse"`
			} `json:"statistics"`
		} `json:"state"`
	}
	if err := a.callNode(ctx, s, gatewayTimeout, "node.get_state", args{"nodeId": n.id}, &got); err != nil {
		return 0, err
	}
	if got.State.Statistics.Timeouts == nil {
		return 0, adapter.Errorf(adapter.Transient,
			"the gateway does not report whether the lock has answered requests about its codes")
	}
	return *got.State.Statistics.Timeouts, nil
}
