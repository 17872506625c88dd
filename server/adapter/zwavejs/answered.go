package zwavejs

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// The gateway asks a lock for users and credentials one by one, and shows what the lock does not answer as if there were
// nothing: its lists end there, without a word (zwave-js AccessControlAPI.getUsers, getAllCredentials, getCredential). Which is
// the next one the lock does say, but the gateway passes that on in no form. What it does tell, without asking the lock, is
// how many questions that has left without an answer so far: where there are more than before, what is shown is not all.

// tries is how often a lock is asked at most: each costs its battery.
const tries = 3

// answered is what endpoint.access_control says of a lock that has left no question without an answer meanwhile.
func answered[T any](ctx context.Context, a *Adapter, s *session, n *node, within time.Duration, command string, arguments args) (got T, err error) {
	before, err := a.unanswered(ctx, s, n)
	if err != nil {
		return got, err
	}
	for range tries {
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
	return got, adapter.Errorf(adapter.Transient, "the lock has not answered all that it was asked of its codes, %d times", tries)
}

// unanswered is how many questions the lock has left without an answer since the gateway started.
func (a *Adapter) unanswered(ctx context.Context, s *session, n *node) (int, error) {
	var got struct {
		State struct {
			Statistics struct {
				Timeouts *int `json:"timeoutResponse"`
			} `json:"statistics"`
		} `json:"state"`
	}
	if err := a.ask(ctx, s, askWithin, "node.get_state", args{"nodeId": n.id}, &got); err != nil {
		return 0, err
	}
	if got.State.Statistics.Timeouts == nil {
		return 0, adapter.Errorf(adapter.Transient, "the gateway does not tell whether the lock has answered for its codes")
	}
	return *got.State.Statistics.Timeouts, nil
}
