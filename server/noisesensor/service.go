// Package noisesensor owns the thresholds of noise sensors: it loads the rows of a device, runs the rules of package
// noise, and writes the difference. Package reconcile reads and writes the devices. Each operation is one transaction
// and documents its errors; a database error is possible in all of them.
package noisesensor

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noise"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Service keeps the thresholds of noise sensors.
type Service struct {
	db       *store.DB
	devices  *device.Service
	accounts *account.Service
	events   *event.Service
}

// New creates a Service. It registers with devices what is recorded of a noise sensor in a list of its vendor.
func New(db *store.DB, devices *device.Service, accounts *account.Service, events *event.Service) *Service {
	s := &Service{
		db:       db,
		devices:  devices,
		accounts: accounts,
		events:   events,
	}
	devices.OnFound(s.recordListed)
	return s
}

// Threshold is a noise threshold of a device.
type Threshold struct {
	ID, DeviceID uuid.UUID
	noise.State
}

func toThreshold(r dbsqlc.NoiseThreshold) Threshold {
	t := Threshold{ID: r.NoiseThresholdID, DeviceID: r.DeviceID}
	_ = json.Unmarshal(r.Desired, &t.State) // written by this package
	return t
}

func notFound(id string) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "noise_threshold_not_found",
		Message: "Could not find a noise threshold with this noise_threshold_id.",
		Data:    map[string]any{"noise_threshold_id": id},
	}
}

// sensorTx is a transaction on the thresholds of one device, which it has locked.
type sensorTx struct {
	noise.Sensor
	s      *Service
	tx     store.Tx
	d      dbsqlc.Device
	before map[uuid.UUID]dbsqlc.InsertNoiseThresholdParams
}

// load returns the transaction on a locked device.
func (s *Service) load(ctx context.Context, tx store.Tx, d dbsqlc.Device) (*sensorTx, error) {
	rows, err := tx.NoiseThresholdsOfDevice(ctx, d.DeviceID)
	if err != nil {
		return nil, err
	}
	t := &sensorTx{
		s:      s,
		tx:     tx,
		d:      d,
		before: make(map[uuid.UUID]dbsqlc.InsertNoiseThresholdParams, len(rows)),
		Sensor: noise.Sensor{
			Now:            s.devices.Now().UTC(),
			ConfirmTimeout: s.devices.ConfirmTimeout(),
			NewID:          domain.NewID,
		},
	}
	for _, r := range rows {
		one := readThreshold(r)
		t.Thresholds = append(t.Thresholds, one)
		t.before[one.ID] = t.rowOf(one)
	}
	return t, nil
}

// readThreshold decodes a row.
func readThreshold(r dbsqlc.NoiseThreshold) *noise.Threshold {
	t := &noise.Threshold{
		ID:         r.NoiseThresholdID,
		Ref:        domain.Value(r.VendorRef),
		Desired:    toThreshold(r).State,
		Managed:    r.IsManaged,
		Deleting:   r.IsDeleting,
		Tries:      int(r.Tries),
		NextAt:     r.NextAt,
		AwaitUntil: r.AwaitUntil,
	}
	if r.Observed != nil {
		t.Observed = &noise.State{}
		_ = json.Unmarshal(r.Observed, t.Observed) // written by this package
	}
	return t
}

// rowOf returns the columns of a threshold.
func (t *sensorTx) rowOf(one *noise.Threshold) dbsqlc.InsertNoiseThresholdParams {
	row := dbsqlc.InsertNoiseThresholdParams{
		NoiseThresholdID: one.ID,
		WorkspaceID:      t.d.WorkspaceID,
		DeviceID:         t.d.DeviceID,
		IsManaged:        one.Managed,
		IsDeleting:       one.Deleting,
		VendorRef:        domain.NonEmpty(one.Ref),
		Desired:          domain.MustJSON(one.Desired),
		Tries:            int32(min(one.Tries, 1000)),
		NextAt:           one.NextAt,
		AwaitUntil:       one.AwaitUntil,
	}
	if one.Observed != nil {
		row.Observed = domain.MustJSON(*one.Observed)
	}
	return row
}

// write stores the changes of the thresholds, and ends the attempts that have ended.
func (t *sensorTx) write(ctx context.Context) error {
	for _, one := range t.Thresholds {
		row := t.rowOf(one)
		was, known := t.before[one.ID]
		var err error
		switch {
		case !known:
			err = t.tx.InsertNoiseThreshold(ctx, row)
		case !reflect.DeepEqual(was, row):
			err = t.tx.UpdateNoiseThreshold(ctx, dbsqlc.UpdateNoiseThresholdParams{
				NoiseThresholdID: row.NoiseThresholdID,
				IsManaged:        row.IsManaged,
				IsDeleting:       row.IsDeleting,
				VendorRef:        row.VendorRef,
				Desired:          row.Desired,
				Observed:         row.Observed,
				Tries:            row.Tries,
				NextAt:           row.NextAt,
				AwaitUntil:       row.AwaitUntil,
			})
		}
		if err != nil {
			return fmt.Errorf("write the noise threshold %s: %w", one.ID, err)
		}
	}
	if gone := t.Removed(); len(gone) > 0 {
		if err := t.tx.DeleteNoiseThresholds(ctx, gone); err != nil {
			return fmt.Errorf("delete noise thresholds: %w", err)
		}
	}
	pending, err := t.s.devices.PendingThresholdAttempts(ctx, t.tx, t.d.DeviceID)
	if err != nil {
		return err
	}
	for _, e := range t.Ends(pending) {
		if err := t.s.devices.EndAttempt(ctx, t.tx, e.Attempt, e.ErrorType, e.Message); err != nil {
			return err
		}
	}
	return nil
}

// Get returns a threshold of a managed device. It fails with NotFound.
func (s *Service) Get(ctx context.Context, p domain.Principal, id string) (Threshold, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return Threshold{}, notFound(id)
	}
	found, err := s.ByID(ctx, p, []uuid.UUID{parsed})
	if err != nil {
		return Threshold{}, err
	}
	if len(found) == 0 {
		return Threshold{}, notFound(id)
	}
	return found[0], nil
}

// ByID returns those thresholds that exist and that the caller can see.
func (s *Service) ByID(ctx context.Context, p domain.Principal, ids []uuid.UUID) ([]Threshold, error) {
	rows, err := s.db.ListNoiseThresholds(ctx, dbsqlc.ListNoiseThresholdsParams{
		WorkspaceID: p.WorkspaceID,
		Scope:       p.Scope,
		Ids:         ids,
	})
	if err != nil {
		return nil, fmt.Errorf("read noise thresholds: %w", err)
	}
	out := make([]Threshold, len(rows))
	for i, r := range rows {
		out[i] = toThreshold(r)
	}
	return out, nil
}

// List lists the thresholds of a managed noise sensor, oldest first. programmed selects those that are on the device,
// or those that are not; nil selects all. It fails with NotFound.
func (s *Service) List(
	ctx context.Context, p domain.Principal, deviceID string, programmed *bool,
) ([]Threshold, error) {
	d, err := s.devices.GetDevice(ctx, p, deviceID, "")
	if err != nil {
		return nil, err
	}
	if d.Capabilities.NoiseSensor == nil {
		return nil, device.NotFound(deviceID)
	}
	rows, err := s.db.ListNoiseThresholds(ctx, dbsqlc.ListNoiseThresholdsParams{
		WorkspaceID: p.WorkspaceID,
		Scope:       p.Scope,
		DeviceID:    &d.ID,
	})
	if err != nil {
		return nil, fmt.Errorf("list the noise thresholds of device %s: %w", d.ID, err)
	}
	out := []Threshold{}
	for _, r := range rows {
		if programmed == nil || *programmed == (r.Observed != nil) {
			out = append(out, toThreshold(r))
		}
	}
	return out, nil
}

// zoneOf returns the time zone that a client has reported for a device, or UTC.
func zoneOf(reported string) *time.Location {
	if zone, err := time.LoadLocation(reported); err == nil {
		return zone
	}
	return time.UTC
}

// CheckHolding fails with Invalid unless one of the thresholds on a device holds now.
func (s *Service) CheckHolding(ctx context.Context, p domain.Principal, d device.Device) error {
	on := true
	all, err := s.List(ctx, p, d.ID.String(), &on)
	if err != nil {
		return err
	}
	zone := zoneOf(d.TimeZone)
	for _, t := range all {
		if t.Holds(s.devices.Now(), zone) {
			return nil
		}
	}
	return domain.Invalidf("device_id",
		"No noise threshold of this device holds at this time of day. Create one that does, or update one")
}
