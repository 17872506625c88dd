package zwavejs_test

import (
	"fmt"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// A lock whose acknowledgments are lost has moved nevertheless, as has one whose gateway's stick or driver failed
// after sending the frame. The command is not repeated.
func TestUncertainBoltCommandIsNotRepeated(t *testing.T) {
	t.Parallel()
	zwave := func(code int, name string) string { return fmt.Sprintf(lockedOut, code, name) }
	for name, test := range map[string]struct {
		answer string
		moved  bool          // the lock shows it
		want   adapter.Class // empty: confirmed
	}{
		"the stick does not answer":        {zwave(200, "Controller_Timeout"), false, adapter.Unconfirmed},
		"the stick does not answer, moved": {zwave(200, "Controller_Timeout"), true, ""},
		"the driver has ended":             {zwave(102, "Driver_Destroyed"), false, adapter.Unconfirmed},
		"no acknowledgement":               {zwave(204, "Controller_CallbackNOK"), false, adapter.Unconfirmed},
		"no acknowledgement, moved":        {zwave(204, "Controller_CallbackNOK"), true, ""},
		"unknown error": {
			`{"success":false,"errorCode":"unknown_error"}`, false,
			adapter.Unconfirmed,
		},
		"there is no such node": {
			`{"success":false,"errorCode":"node_not_found"}`, false,
			adapter.NotFound,
		},
		"there is no such command": {
			`{"success":false,"errorCode":"unknown_command"}`, false,
			adapter.NotSupported,
		},
		"the node was removed":               {zwave(213, "Controller_NodeRemoved"), false, adapter.NotFound},
		"the lock has no such command class": {zwave(302, "CC_NotSupported"), false, adapter.NotSupported},
		"the gateway has no such class":      {zwave(303, "CC_NotImplemented"), false, adapter.NotSupported},
		"the gateway cannot command it":      {zwave(304, "CC_NoAPI"), false, adapter.NotSupported},
		"the argument is none":               {zwave(322, "Argument_Invalid"), false, adapter.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const get = "get" // of the command class, not of HTTP
			s := play(t, map[int]string{}, func(_ *script, c command) string {
				switch {
				case c.Method == "set":
					return test.answer
				case c.Method == get && test.moved:
					return `{"response":{"currentMode":0}}`
				case c.Method == get:
					return `{"response":{"currentMode":255}}`
				}
				return ""
			})
			state, err := s.adapter.Unlock(t.Context(), s.device)
			if test.want != "" {
				failsAs(t, err, test.want)
			} else if err != nil || state != adapter.Confirmed {
				t.Errorf("Unlock of a lock that shows it: %q, %v", state, err)
			}
			if n := s.count(writes); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}
