// Package thermostat owns what thermostats are set to: commands, climate presets, schedules, and programs. Package
// climate has the rules. This package loads the rows of a device, applies the rules, and writes the difference. Package
// reconcile reads and sets the devices. Each operation is one transaction and documents its errors; a database error is
// possible in all of them. The package must not know HTTP or any vendor.
package thermostat

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/climate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// Options of a Service. The zero value is for production.
type Options struct {
	// ConfirmTimeout is how long an accepted write may stay invisible before it counts as failed. The default is
	// 60 s.
	ConfirmTimeout time.Duration
	// ReadLag is how long a read may show the setting from before a confirmed write. The default is 10 s.
	ReadLag time.Duration
	// PollInterval is the longest time between two reads of a thermostat that is reachable. It finds what a vendor
	// without events does not report. The default is 10 min.
	PollInterval time.Duration
	// Now is the clock. The default is the system's.
	Now func() time.Time
}

// Services are the other services that a Service calls.
type Services struct {
	Events   *event.Service
	Accounts *account.Service
	Devices  *device.Service
}

// Service keeps thermostats.
type Service struct {
	db       *store.DB
	events   *event.Service
	accounts *account.Service
	devices  *device.Service
	opt      Options
}

// New creates a Service. db must be migrated. It registers with r what it records of the devices that vendors list.
func New(db *store.DB, r Services, opt Options) *Service {
	opt.PollInterval = cmp.Or(opt.PollInterval, 10*time.Minute)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	s := &Service{
		db:       db,
		events:   r.Events,
		accounts: r.Accounts,
		devices:  r.Devices,
		opt:      opt,
	}
	r.Devices.OnFound(s.recordFound)
	return s
}

// Get returns a thermostat by its identifier or, if that is empty, by its name. It fails with Invalid unless exactly one
// is given, and with NotFound, also for another kind of device.
func (s *Service) Get(ctx context.Context, p domain.Principal, id, name string) (device.Device, error) {
	d, err := s.devices.GetDevice(ctx, p, id, name)
	if err == nil && d.Capabilities.Thermostat == nil {
		return d, device.NotFound(d.ID.String())
	}
	return d, err
}

// View returns a device as the rules see it, without its schedules. The device must be a thermostat.
func View(d device.Device) *climate.Thermostat {
	t := &climate.Thermostat{Limits: *d.Capabilities.Thermostat, Online: d.Online}
	if d.Climate != nil {
		t.State = *d.Climate
	}
	return t
}

// change runs f in a transaction that locks a thermostat for a change by a client, and wakes the device. It fails with
// NotFound, also for another kind of device, and with Invalid (device_unmanaged).
func (s *Service) change(
	ctx context.Context, p domain.Principal, deviceID, doing string, f func(context.Context, *rows) error,
) error {
	id, err := uuid.Parse(deviceID)
	if err != nil {
		return device.NotFound(deviceID)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		d, err := device.LockManaged(ctx, tx, p, id)
		if err != nil {
			return err
		}
		limits := device.CapabilitiesOf(d).Thermostat
		if limits == nil {
			return device.NotFound(deviceID)
		}
		r, err := s.load(ctx, tx, d, *limits)
		if err != nil {
			return err
		}
		if err := f(ctx, r); err != nil {
			return err
		}
		r.rules.Plan()
		if err := r.write(ctx); err != nil {
			return err
		}
		return s.accounts.WakeDevice(ctx, tx, id, false)
	})
	return domain.Wrap(err, doing+" of device "+deviceID)
}
