package zwavejs

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// An unexplained move is attributed to a running command, even if the command waited for the radio, or the reverse
// command followed.
func TestUnexplainedMoveBelongsToCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happen func(*operation, func(locked bool)) // commands, responses, and reports of the lock
		want   adapter.Method                      // empty: no event
	}{
		"soon": {
			func(o *operation, report func(bool)) { o.noteCommand(true); report(true); o.noteResponse(true, nil) },
			adapter.Remotely,
		},
		"before its answer": {func(o *operation, report func(bool)) {
			o.noteCommand(true)
			time.Sleep(radioTimeout)
			report(true)
			o.noteResponse(true, nil)
		}, adapter.Remotely},
		"after its answer": {func(o *operation, report func(bool)) {
			o.noteCommand(true)
			time.Sleep(radioTimeout)
			o.noteResponse(true, nil)
			time.Sleep(commandWindow - time.Second)
			report(true)
		}, adapter.Remotely},
		"and told to go back": {func(o *operation, report func(bool)) {
			o.noteCommand(true)
			report(true)
			o.noteResponse(true, nil)
			o.noteCommand(false)
		}, adapter.Remotely},
		"long after the connection was lost": {func(o *operation, report func(bool)) {
			o.noteCommand(true)
			o.noteResponse(true, adapter.Errorf(adapter.Unconfirmed, "the connection was lost"))
			time.Sleep(unansweredWindow - time.Second)
			report(true)
		}, adapter.Remotely},
		"after one that was not sent": {func(o *operation, report func(bool)) {
			o.noteCommand(true)
			o.noteResponse(true, adapter.Errorf(adapter.GatewayDown, "the connection is lost"))
			report(true)
		}, adapter.ByUnknown},
		"long after its answer": {func(o *operation, report func(bool)) {
			o.noteCommand(true)
			o.noteResponse(true, nil)
			time.Sleep(commandWindow)
			report(true)
		}, adapter.ByUnknown},
		"the other way": {func(o *operation,
			report func(bool),
		) {
			o.noteCommand(false)
			report(true)
			o.noteResponse(false, nil)
		}, adapter.ByUnknown},
		"said so itself, and was unlocked since": {func(o *operation, report func(bool)) {
			o.noteReport(true)
			o.noteReport(false)
			report(true)
		}, ""},
		"never told": {func(_ *operation, report func(bool)) { report(true) }, adapter.ByUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, n := &Adapter{hints: adapter.NewEventQueue()}, &node{ref: "lock"}
				defer a.hints.Close()
				test.happen(&n.operated, func(locked bool) {
					a.mu.Lock()
					defer a.mu.Unlock()
					a.reportUnexplainedMove(n, locked)
				})
				time.Sleep(noticeWindow)
				synctest.Wait()
				var e adapter.Event
				select {
				case e = <-a.hints.Events():
				default:
				}
				if told := e.Kind == adapter.LockOperated && e.Operation.Locked; e.Operation.Method != test.want ||
					told != (test.want != "") {
					t.Fatalf("event %+v, want %q", e, test.want)
				}
			})
		})
	}
}
