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

// Timeouts of requests to the gateway. The gateway repeats lost radio frames, and a lock sleeps for a second at a
// time. For a lock that sleeps for hours, the gateway would keep a command that long.
const (
	gatewayTimeout = 10 * time.Second // answered by the gateway
	radioTimeout   = time.Minute      // answered by a lock
	readAllTimeout = 10 * time.Minute // reads a whole lock
)

// pingCommand is a command without radio traffic that shows whether the gateway answers.
const pingCommand = "driver.is_statistics_enabled"

// Devices implements adapter.Adapter. It causes no radio traffic: the gateway reports changes, and is only asked
// whether it answers.
func (a *Adapter) Devices(ctx context.Context) ([]adapter.Device, error) {
	devices, err := a.list(ctx)
	if err != nil && adapter.ClassOf(err) == adapter.GatewayDown && ctx.Err() == nil {
		return a.list(ctx) // the connection was lost: the next attempt reports why
	}
	return devices, err
}

func (a *Adapter) list(ctx context.Context) ([]adapter.Device, error) {
	s, err := a.connected(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.callNode(ctx, s, gatewayTimeout, pingCommand, nil, nil); err != nil {
		return nil, asRead(err)
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
			return nil, asRead(err)
		}
		devices[i] = a.device(n)
	}
	return devices, nil
}

// Device implements adapter.Adapter.
func (a *Adapter) Device(ctx context.Context, device adapter.DeviceRef) (adapter.Device, error) {
	s, n, err := a.find(ctx, device)
	if err != nil {
		return adapter.Device{}, err
	}
	if n.climate != nil {
		if err := a.refreshClimate(ctx, s, n); err != nil {
			return adapter.Device{}, err
		}
	}
	return a.device(n), nil
}

// find returns the device with its capabilities. It fails like adapter.Adapter's Device.
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
		return nil, nil, asRead(err)
	}
	return s, n, nil
}

// absent returns the error for a device that is not listed. A gateway lists all nodes of its network immediately, but
// not their types. Nodes that are missing were excluded; so were nodes that are another product. The same product may
// show fewer command classes if it was interviewed without its security keys. A device of another network may return
// with that network.
func (a *Adapter) absent(s *session, device adapter.DeviceRef) *adapter.Error {
	home, id, ok := parseRef(device)
	other, listed := a.otherNodes[id]
	switch {
	case ok && home == s.home && listed && other == "":
		return adapter.Errorf(adapter.Transient, "the gateway's interview of the device is incomplete")
	case ok && home == s.home && listed && other == device:
		return adapter.Errorf(adapter.Transient,
			"the gateway reports no lock or thermostat at this node now: if this persists, interview it again, or "+
				"include it again with its security keys")
	case ok && home == s.home:
		return &adapter.Error{
			Class: adapter.NotFound, Message: "the device was excluded from the gateway's network",
			Gone: true,
		}
	}
	return adapter.Errorf(adapter.NotFound, "the gateway's network has no such device")
}

// callNode calls with its own timeout in addition to that of ctx.
func (a *Adapter) callNode(ctx context.Context, s *session, within time.Duration, command string, arguments args,
	out any,
) (err error) {
	traced, span := adapter.StartCommandSpan(ctx, "zwavejs", a.url, command)
	defer func() { adapter.EndSpan(span, err) }()
	limited, cancel := context.WithTimeout(traced, within)
	defer cancel()
	err = s.call(limited, command, arguments, out)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) { // the timeout within, not that of ctx
		return adapter.AsError(err)
	}
	return err
}

// invoke calls a method of a command class of a lock.
func (a *Adapter) invoke(ctx context.Context, s *session, n *node, commandClass int, method string, arguments []any,
	out any,
) error {
	return a.callNode(ctx, s, radioTimeout, "endpoint.invoke_cc_api",
		args{
			"nodeId": n.id, "endpoint": 0, "commandClass": commandClass,
			"methodName": method, "args": arguments,
		}, out)
}

// contextError returns the error of a call whose context has ended.
func contextError(ctx context.Context, class adapter.Class, message string) error {
	return fmt.Errorf("%w (%w)", adapter.Errorf(class, "%s", message), ctx.Err())
}

// asRead converts Unconfirmed to GatewayDown for calls that change nothing, whose lost request does no harm.
func asRead(err error) error {
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

// unavailable converts the error of a connection to the classes that methods return.
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

// acquire acquires exclusive access to the device. The result releases it.
func (a *Adapter) acquire(ctx context.Context, n *node) (func(), error) {
	select {
	case n.busy <- struct{}{}:
		return func() { <-n.busy }, nil
	case <-ctx.Done():
		return nil, contextError(ctx, adapter.Transient, "the device is busy with other requests")
	}
}

// ensureAwake fails with Offline if the device does not answer. A device that the gateway considers dead is pinged once,
// because some do not announce their return.
func (a *Adapter) ensureAwake(ctx context.Context, s *session, n *node) error {
	a.mu.Lock()
	dead := n.status == nodeDead
	a.mu.Unlock()
	if !dead {
		return nil
	}
	var pong struct {
		Responded bool `json:"responded"`
	}
	if err := a.callNode(ctx, s, radioTimeout, "node.ping", args{"nodeId": n.id}, &pong); err != nil {
		return asRead(err)
	}
	if !pong.Responded {
		return adapter.Errorf(adapter.Offline, "the device does not answer the gateway's radio")
	}
	return nil
}
