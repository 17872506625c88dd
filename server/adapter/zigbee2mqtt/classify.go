package zigbee2mqtt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// failures maps texts in the log of Zigbee2MQTT; the first match counts. The texts are those of zigbee-herdsman and
// zigbee-herdsman-converters 2.14.
var failures = []struct {
	text    string
	class   adapter.Class
	message string
}{
	{"must be in range", adapter.Full, "the lock has no such slot"},
	{"UNSUPPORTED_ATTRIBUTE", adapter.NotSupported, "the lock does not report this value"},
	{"UNSUP_", adapter.NotSupported, "the lock does not support the command"},
	{"UNSUPPORTED_CLUSTER", adapter.NotSupported, "the lock does not support the command"},
	{"INVALID_", adapter.Invalid, "the lock rejects the command as invalid"},
	{"MAC_NO_ACK", adapter.Offline, "the lock does not answer: no acknowledgment by radio"},
	{"NO_ROUTE", adapter.Offline, "the lock does not answer: no route to it"},
	{"MAC_", adapter.Offline, "the lock does not answer: the radio could not deliver"},
	{"imeout", adapter.Offline, "the lock does not answer in time"},
	{"timed out", adapter.Offline, "the lock does not answer in time"},
	{"elivery", adapter.Offline, "the lock does not answer: the radio could not deliver"},
	{"no ack", adapter.Offline, "the lock does not answer"},
}

// failure returns the error of a failed command. It omits the text, which contains the PIN.
func failure(text string) *adapter.Error {
	for _, f := range failures {
		if strings.Contains(text, f.text) {
			return adapter.Errorf(f.class, "%s", f.message)
		}
	}
	return adapter.Errorf(adapter.Transient, "Zigbee2MQTT could not execute the command; see its log")
}

// waitError returns the error of an unsuccessful wait, joined to the error of ctx when that has ended.
func waitError(ctx context.Context, class adapter.Class, message string) error {
	e := adapter.Errorf(class, "%s", message)
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", e, ctx.Err())
	}
	return e
}

// errNoAnswer is returned for a command without a response. Callers outside the package never see it.
var errNoAnswer = errors.New("no answer")

// noAnswerAs converts errNoAnswer to an error of the class, and returns other errors unchanged.
func noAnswerAs(ctx context.Context, err error, class adapter.Class) error {
	if errors.Is(err, errNoAnswer) {
		return waitError(ctx, class, "the lock does not answer")
	}
	return err
}

// asUnconfirmed converts an error after a write to Unconfirmed, unless the outcome is certain.
func asUnconfirmed(ctx context.Context, err error) error {
	e := adapter.AsError(err)
	if ctx.Err() == nil && e.Class != adapter.GatewayDown && e.Class != adapter.Transient {
		return err
	}
	return waitError(ctx, adapter.Unconfirmed, "the outcome at the lock is unknown: "+e.Message)
}
