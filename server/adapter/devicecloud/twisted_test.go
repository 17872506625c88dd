package devicecloud_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
)

// twisted is a correct adapter with one defect: the field that is set.
type twisted struct {
	adapter.Adapter
	caps    func(*capability.Set)
	devices func([]adapter.Device)
	codes   func(*adapter.Codes)
	put     func(ctx context.Context, next putFunc, spec adapter.CodeSpec) (adapter.PutResult, error)
	del     func(ctx context.Context, next delFunc, code adapter.CodeRef) (adapter.State, error)
	err     func(*adapter.Error)                          // changes every error
	deaf    time.Duration                                 // delays calls, independent of their context
	dead    *atomic.Bool                                  // fails every call
	events  func(<-chan adapter.Event) chan adapter.Event // is called once
}

type (
	putFunc func(context.Context, adapter.CodeSpec) (adapter.PutResult, error)
	delFunc func(context.Context, adapter.CodeRef) (adapter.State, error)
)

func (w *twisted) context(ctx context.Context) context.Context {
	if w.deaf == 0 {
		return ctx
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	time.AfterFunc(w.deaf, cancel)
	return ctx
}

func (w *twisted) error(err error) error {
	if w.dead != nil && w.dead.Load() {
		return adapter.Errorf(adapter.GatewayDown, "not connected")
	}
	if e := adapter.AsError(err); e != nil && w.err != nil {
		changed := *e
		w.err(&changed)
		return &changed
	}
	return err
}

func (w *twisted) Devices(ctx context.Context) ([]adapter.Device, error) {
	devices, err := w.Adapter.Devices(w.context(ctx))
	for i := range devices {
		if w.caps != nil {
			w.caps(&devices[i].Capabilities)
		}
	}
	if w.devices != nil && err == nil {
		w.devices(devices)
	}
	return devices, w.error(err)
}

func (w *twisted) Device(ctx context.Context, ref adapter.DeviceRef) (adapter.Device, error) {
	d, err := w.Adapter.Device(w.context(ctx), ref)
	if w.caps != nil {
		w.caps(&d.Capabilities)
	}
	return d, w.error(err)
}

func (w *twisted) Codes(ctx context.Context, ref adapter.DeviceRef, fresh bool) (adapter.Codes, error) {
	codes, err := w.Adapter.Codes(w.context(ctx), ref, fresh)
	if w.codes != nil && err == nil {
		w.codes(&codes)
	}
	return codes, w.error(err)
}

func (w *twisted) PutCode(ctx context.Context, ref adapter.DeviceRef,
	spec adapter.CodeSpec,
) (adapter.PutResult, error) {
	next := func(ctx context.Context, spec adapter.CodeSpec) (adapter.PutResult, error) {
		return w.Adapter.PutCode(w.context(ctx), ref, spec)
	}
	if w.put != nil {
		return w.put(ctx, next, spec)
	}
	result, err := next(ctx, spec)
	return result, w.error(err)
}

func (w *twisted) DeleteCode(ctx context.Context, ref adapter.DeviceRef, code adapter.CodeRef) (adapter.State, error) {
	next := func(ctx context.Context, code adapter.CodeRef) (adapter.State, error) {
		return w.Adapter.DeleteCode(w.context(ctx), ref, code)
	}
	if w.del != nil {
		return w.del(ctx, next, code)
	}
	state, err := next(ctx, code)
	return state, w.error(err)
}

func (w *twisted) Events() <-chan adapter.Event {
	if w.events == nil {
		return w.Adapter.Events()
	}
	return w.events(w.Adapter.Events())
}

// passing forwards the events for which pass returns true. The channel stays open if leaks.
func passing(pass func(adapter.Event) bool, leak bool) func(<-chan adapter.Event) chan adapter.Event {
	var once sync.Once
	out := make(chan adapter.Event, 1000)
	return func(in <-chan adapter.Event) chan adapter.Event {
		once.Do(func() {
			go func() {
				for e := range in {
					if pass(e) {
						out <- e
					}
				}
				if !leak {
					close(out)
				}
			}()
		})
		return out
	}
}
