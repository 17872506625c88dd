package zwavejs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// How long the gateway may take: it repeats what is lost on the radio by itself, and a lock sleeps for a second
// at a time. One that sleeps for hours would keep a command as long.
const (
	askWithin   = 10 * time.Second // what the gateway answers by itself
	radioWithin = time.Minute      // what it asks a lock
	walkWithin  = 10 * time.Minute // all that is on a lock
)

// presence is a command that costs no radio, to see whether the gateway is there.
const presence = "driver.is_statistics_enabled"

// Devices implements adapter.Adapter. It costs no radio: the gateway tells of what changes, and is only asked
// whether it is still there.
func (a *Adapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	devices, err := a.list(ctx)
	if err != nil && adapter.ClassOf(err) == adapter.GatewayDown && ctx.Err() == nil {
		return a.list(ctx) // lost meanwhile: the next try to connect tells why
	}
	return devices, err
}

func (a *Adapter) list(ctx context.Context) ([]adapter.Device, error) {
	s, err := a.connected(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.ask(ctx, s, askWithin, presence, nil, nil); err != nil {
		return nil, unsent(err)
	}
	a.mu.Lock()
	nodes := make([]*node, 0, len(a.nodes))
	for _, n := range a.nodes {
		nodes = append(nodes, n)
	}
	a.mu.Unlock()
	slices.SortFunc(nodes, func(m, n *node) int { return cmp.Compare(m.id, n.id) })
	devices := make([]adapter.Device, len(nodes))
	for i, n := range nodes {
		if err := a.capabilities(ctx, s, n); err != nil {
			return nil, unsent(err)
		}
		devices[i] = a.device(n)
	}
	return devices, nil
}

// Device implements adapter.Adapter.
func (a *Adapter) Device(ctx context.Context, device adapter.DeviceRef) (adapter.Device, error) {
	_, n, err := a.find(ctx, device)
	if err != nil {
		return adapter.Device{}, err
	}
	return a.device(n), nil
}

// find is the lock, with its capabilities. It fails like adapter.Adapter's Device.
func (a *Adapter) find(ctx context.Context, device adapter.DeviceRef) (*session, *node, error) {
	s, err := a.connected(ctx)
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	var n *node
	for _, other := range a.nodes {
		if other.ref == device {
			n = other
		}
	}
	if n == nil {
		defer a.mu.Unlock()
		return nil, nil, a.absent(s, device)
	}
	a.mu.Unlock()
	if err := a.capabilities(ctx, s, n); err != nil {
		return nil, nil, unsent(err)
	}
	return s, n, nil
}

// absent is the error about a lock that is not among them. A gateway knows all nodes of its network at once, but not
// what they are: those that are not there were excluded, and so were those that are something else. What is the same
// product shows less than it is, as it does where it was interviewed without its keys. Those of another network may
// come back with it.
func (a *Adapter) absent(s *session, device adapter.DeviceRef) *adapter.Error {
	home, id, ok := whose(device)
	other, listed := a.others[id]
	switch {
	case ok && home == s.home && listed && other == "":
		return adapter.Errorf(adapter.Transient, "the gateway's interview of the lock is not over")
	case ok && home == s.home && listed && other == device:
		return adapter.Errorf(adapter.Transient, "the gateway shows no lock there for now: interview it again, or include it again with its security keys, if that lasts")
	case ok && home == s.home:
		return &adapter.Error{Class: adapter.NotFound, Message: "the lock was excluded from the gateway's network", Gone: true}
	}
	return adapter.Errorf(adapter.NotFound, "the gateway's network has no such lock")
}

// ask calls with a limit of its own besides that of ctx.
func (a *Adapter) ask(ctx context.Context, s *session, within time.Duration, command string, arguments args, out any) (err error) {
	traced, span := adapter.TraceCommand(ctx, "zwavejs", a.url, command)
	defer func() { adapter.Traced(span, err) }()
	limited, cancel := context.WithTimeout(traced, within)
	defer cancel()
	err = s.call(limited, command, arguments, out)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) { // ours: the caller's has not passed
		return adapter.AsError(err)
	}
	return err
}

// invoke calls a method of a command class of a lock.
func (a *Adapter) invoke(ctx context.Context, s *session, n *node, commandClass int, method string, arguments []any, out any) error {
	return a.ask(ctx, s, radioWithin, "endpoint.invoke_cc_api", args{"nodeId": n.id, "endpoint": 0, "commandClass": commandClass,
		"methodName": method, "args": arguments}, out)
}

// late is the error of a call whose context has ended.
func late(ctx context.Context, class adapter.Class, message string) error {
	return fmt.Errorf("%w (%w)", adapter.Errorf(class, "%s", message), ctx.Err())
}

// unsent puts an error into the classes of calls that change nothing: what is not known to have arrived does no
// harm there.
func unsent(err error) error {
	e := adapter.AsError(err)
	if e == nil || e.Class != adapter.Unconfirmed {
		return err
	}
	other := *e
	other.Class = adapter.GatewayDown
	for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, ended) {
			return fmt.Errorf("%w (%w)", &other, ended)
		}
	}
	return &other
}

// unavailable puts the error of a connection into the classes that methods fail with.
func unavailable(err error) error {
	e := adapter.AsError(err)
	switch {
	case e == nil:
		return adapter.Errorf(adapter.GatewayDown, "the gateway cannot be reached: %s", adapter.Reason(err))
	case e.Class == adapter.AuthRevoked:
		return e
	}
	return adapter.Errorf(adapter.GatewayDown, "%s", e.Message)
}

// hold has the lock's codes to oneself; the result gives them back.
func (a *Adapter) hold(ctx context.Context, n *node) (func(), error) {
	select {
	case n.busy <- struct{}{}:
		return func() { <-n.busy }, nil
	case <-ctx.Done():
		return nil, late(ctx, adapter.Transient, "the lock is busy with other codes")
	}
}

// awake fails with Offline where the lock does not answer. One that the gateway holds for dead is asked once:
// some say nothing by themselves when they are back.
func (a *Adapter) awake(ctx context.Context, s *session, n *node) error {
	a.mu.Lock()
	dead := n.status == nodeDead
	a.mu.Unlock()
	if !dead {
		return nil
	}
	var pong struct {
		Responded bool `json:"responded"`
	}
	if err := a.ask(ctx, s, radioWithin, "node.ping", args{"nodeId": n.id}, &pong); err != nil {
		return unsent(err)
	}
	if !pong.Responded {
		return adapter.Errorf(adapter.Offline, "the lock does not answer the gateway's radio")
	}
	return nil
}
