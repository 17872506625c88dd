package zigbee2mqtt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// failures say what a text in Zigbee2MQTT's log means; the first that is found counts. The texts are those of
// zigbee-herdsman and zigbee-herdsman-converters 2.14.
var failures = []struct {
	text    string
	class   adapter.Class
	message string
}{
	{"must be in range", adapter.Full, "the lock has no such place for a code"},
	{"UNSUPPORTED_ATTRIBUTE", adapter.NotSupported, "the lock does not tell that"},
	{"UNSUP_", adapter.NotSupported, "the lock does not know the command"},
	{"UNSUPPORTED_CLUSTER", adapter.NotSupported, "the lock does not know the command"},
	{"INVALID_", adapter.Invalid, "the lock refuses the command as invalid"},
	{"MAC_NO_ACK", adapter.Offline, "the lock does not answer: no acknowledgement by radio"},
	{"NO_ROUTE", adapter.Offline, "the lock does not answer: no route to it"},
	{"MAC_", adapter.Offline, "the lock does not answer: the radio could not deliver"},
	{"imeout", adapter.Offline, "the lock does not answer in time"},
	{"timed out", adapter.Offline, "the lock does not answer in time"},
	{"elivery", adapter.Offline, "the lock does not answer: the radio could not deliver"},
	{"no ack", adapter.Offline, "the lock does not answer"},
}

// failure is the error of a command that Zigbee2MQTT could not carry out. Its text is not passed on: it holds
// the PIN.
func failure(text string) *adapter.Error {
	for _, f := range failures {
		if strings.Contains(text, f.text) {
			return adapter.Errorf(f.class, "%s", f.message)
		}
	}
	return adapter.Errorf(adapter.Transient, "Zigbee2MQTT could not carry out the command; its log says why")
}

// lost is the error of something that was waited for in vain, joined to the context's where that has ended.
func lost(ctx context.Context, class adapter.Class, message string) error {
	e := adapter.Errorf(class, "%s", message)
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", e, ctx.Err())
	}
	return e
}

// errNoAnswer is what a command comes to that nothing is heard of. It is not passed on.
var errNoAnswer = errors.New("no answer")

// late makes an error of the class of errNoAnswer, and leaves others as they are.
func late(ctx context.Context, err error, class adapter.Class) error {
	if errors.Is(err, errNoAnswer) {
		return lost(ctx, class, "the lock does not answer")
	}
	return err
}

// unsure makes the error of what came after a write one that says so, unless it is clear what became of it.
func unsure(ctx context.Context, err error) error {
	e := adapter.AsError(err)
	if ctx.Err() == nil && e.Class != adapter.GatewayDown && e.Class != adapter.Transient {
		return err
	}
	return lost(ctx, adapter.Unconfirmed, "nobody knows whether the lock has done it: "+e.Message)
}
