package devicecloud

import (
	"context"
	"net/http"
	"net/url"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// SetOnline implements adapter.Simulator.
func (a *Adapter) SetOnline(ctx context.Context, device adapter.DeviceRef, online bool) error {
	if online {
		return a.control(ctx, device, "online", struct{}{}, nil)
	}
	return a.control(ctx, device, "offline", struct{}{}, nil)
}

// RemoveDevice implements adapter.Simulator.
func (a *Adapter) RemoveDevice(ctx context.Context, device adapter.DeviceRef) error {
	return a.control(ctx, device, "remove", struct{}{}, nil)
}

// AddCode implements adapter.Simulator.
func (a *Adapter) AddCode(ctx context.Context, device adapter.DeviceRef, name, pin,
	request string,
) (adapter.CodeRef, error) {
	var got wireCode
	err := a.control(ctx, device, "keypad/codes", map[string]string{"name": name, "code": pin, "request": request},
		&got)
	return adapter.CodeRef(got.ID), err
}

// EnterCode implements adapter.Simulator.
func (a *Adapter) EnterCode(ctx context.Context, device adapter.DeviceRef, pin string) (bool, error) {
	var got struct {
		Unlocked bool `json:"unlocked"`
	}
	err := a.control(ctx, device, "keypad/enter", map[string]string{"code": pin}, &got)
	return got.Unlocked, err
}

// LockByHand implements adapter.Simulator.
func (a *Adapter) LockByHand(ctx context.Context, device adapter.DeviceRef) error {
	return a.control(ctx, device, "keypad/lock", struct{}{}, nil)
}

// SetHub implements adapter.Simulator.
func (a *Adapter) SetHub(ctx context.Context, device adapter.DeviceRef, online bool) error {
	return a.control(ctx, device, "hub", map[string]bool{"online": online}, nil)
}

// SetSubscription implements adapter.Simulator.
func (a *Adapter) SetSubscription(ctx context.Context, device adapter.DeviceRef, expired bool) error {
	return a.control(ctx, device, "subscription", map[string]bool{"expired": expired}, nil)
}

// Disconnect implements adapter.Simulator.
func (a *Adapter) Disconnect(ctx context.Context) error {
	return a.do(ctx, call{
		method:  http.MethodPost,
		path:    "/sandbox/account/revoke",
		body:    struct{}{},
		control: true,
	},
		nil)
}

// control sends a request that only package sandbox implements.
func (a *Adapter) control(ctx context.Context, device adapter.DeviceRef, what string, body, out any) error {
	path := "/sandbox/locks/" + url.PathEscape(string(device)) + "/" + what
	return a.do(ctx, call{
		method:  http.MethodPost,
		path:    path,
		body:    body,
		control: true,
	}, out)
}
