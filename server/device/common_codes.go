package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/lockstate"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// NewCodes is a request for one code on many devices. NewCode.DeviceID and CommonCodeKey are ignored.
type NewCodes struct {
	NewCode

	DeviceIDs []string
	OwnPINs   bool // a device that does not accept the shared PIN gets its own
}

// place is a device for a new code.
type place struct {
	device dbsqlc.Device
	taken  []lockstate.Occupant
	pins   pinDigits
	unread bool // taken was not read
}

// maxTaken is how many existing codes one request keeps in memory, about 4 MB. It reads those of further
// devices when needed: 500 devices with 5,000 codes each are 500 MB.
const maxTaken = 20_000

// CreateCodes creates a code on each of the devices, or on none. Without a PIN it chooses one that all accept,
// and the codes share a key.
//
// It fails like CreateCode, and with Invalid (code_cannot_be_shared) where no PIN suits all devices. Errors
// name the device.
func (s *Service) CreateCodes(ctx context.Context, p domain.Principal, n NewCodes) (codes []Code, err error) {
	ids := make([]uuid.UUID, len(n.DeviceIDs))
	for i, text := range n.DeviceIDs {
		id, err := uuid.Parse(text)
		if err != nil {
			return nil, deviceNotFound("device_id", text)
		}
		if slices.Contains(ids[:i], id) {
			return nil, domain.Invalidf("device_ids", "Device %s is named twice", id)
		}
		ids[i] = id
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		codes = nil
		places, err := s.lockPlaces(ctx, tx, p, ids)
		if err != nil {
			return err
		}
		one := n.NewCode
		if one.PIN == "" {
			sharing := ids
			if n.OwnPINs {
				sharing = slices.DeleteFunc(
					slices.Clone(ids),
					func(id uuid.UUID) bool { return capabilities(places[id].device).ProviderPIN },
				)
			}
			one.PIN, err = s.sharedPIN(ctx, tx, sharing, places, n.PreferredLength)
			switch {
			case err != nil && !n.OwnPINs:
				return err
			case err == nil:
				one.CommonCodeKey = uuid.NewString()
			}
		}
		for _, id := range ids {
			c, err := s.createShared(ctx, tx, places[id], one, n.OwnPINs)
			if err != nil {
				return onDeviceError(err, id)
			}
			codes = append(codes, c)
		}
		return nil
	})
	if _, ok := domain.AsError(err); err != nil && !ok {
		err = fmt.Errorf("create %d access codes: %w", len(ids), err)
	}
	return codes, err
}

// createShared creates a code on one of the devices: with the shared PIN or, if mayDiffer, with its own.
func (s *Service) createShared(ctx context.Context, tx store.Tx, at place, n NewCode, mayDiffer bool) (Code, error) {
	at, err := s.read(ctx, tx, at)
	if err != nil {
		return Code{}, err
	}
	c, _, err := s.create(ctx, tx, at, n, tx.Batch)
	if e, ok := domain.AsError(err); ok && mayDiffer && n.PIN != "" && aboutPIN(e) {
		n.PIN, n.CommonCodeKey = "", ""
		c, _, err = s.create(ctx, tx, at, n, tx.Batch)
	}
	return c, err
}

// aboutPIN reports whether the PIN is the only cause of an error.
func aboutPIN(e *domain.Error) bool {
	return (e.Field == "code" || e.Field == "common_code_key") && len(e.Also) == 0
}

// onDeviceError adds the device to an error.
func onDeviceError(err error, device uuid.UUID) error {
	e, ok := errors.AsType[*domain.Error](err)
	if !ok {
		return err
	}
	named := *e
	named.Message = fmt.Sprintf("On device %s: %s", device, e.Message)
	named.Data = maps.Clone(e.Data)
	if named.Data == nil {
		named.Data = map[string]any{}
	}
	named.Data["device_id"] = device
	return &named
}

// lockPlaces locks the devices in a fixed order, and reads the codes on them up to maxTaken.
func (s *Service) lockPlaces(
	ctx context.Context, tx store.Tx, p domain.Principal, ids []uuid.UUID,
) (map[uuid.UUID]place, error) {
	places, taken := map[uuid.UUID]place{}, 0
	for _, id := range slices.SortedFunc(slices.Values(ids), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) {
		var at place
		var err error
		if taken < maxTaken {
			at, err = s.lockPlace(ctx, tx, p, id)
		} else {
			at.unread = true
			at.device, err = lockManagedDevice(ctx, tx, p, id)
		}
		if err != nil {
			return nil, err
		}
		places[id] = at
		taken += len(at.taken)
	}
	return places, nil
}

// read returns the place with its codes, which cannot change under the lock.
func (s *Service) read(ctx context.Context, tx store.Tx, at place) (place, error) {
	if !at.unread {
		return at, nil
	}
	rows, err := tx.ListOccupiedPINs(ctx, at.device.DeviceID)
	return s.placeOf(at.device, rows), err
}

// lockPlace is lockManagedDevice for a device that will get a code.
func (s *Service) lockPlace(
	ctx context.Context, tx store.Tx, p domain.Principal, id uuid.UUID,
) (at place, err error) {
	var d dbsqlc.Device
	var rows []dbsqlc.ListOccupiedPINsRow
	err = tx.Batch(ctx,
		func(tx store.Tx) (err error) {
			d, err = tx.LockWorkspaceDevice(
				ctx,
				dbsqlc.LockWorkspaceDeviceParams{WorkspaceID: p.WorkspaceID, DeviceID: id, Scope: p.Scope},
			)
			return err
		},
		func(tx store.Tx) (err error) { rows, err = tx.ListOccupiedPINs(ctx, id); return err })
	if err := mayWorkOn(d, id, p, err); err != nil {
		return at, err
	}
	return s.placeOf(d, rows), nil
}

// lockManagedDevice locks a managed device of the workspace. It fails with NotFound, and with Invalid
// (device_unmanaged).
func lockManagedDevice(ctx context.Context, tx store.Tx, p domain.Principal, id uuid.UUID) (dbsqlc.Device, error) {
	d, err := tx.LockWorkspaceDevice(
		ctx,
		dbsqlc.LockWorkspaceDeviceParams{WorkspaceID: p.WorkspaceID, DeviceID: id, Scope: p.Scope},
	)
	return d, mayWorkOn(d, id, p, err)
}

// mayWorkOn fails where the device cannot be changed. err is the error of its read.
func mayWorkOn(d dbsqlc.Device, id uuid.UUID, p domain.Principal, err error) error {
	switch {
	case store.IsNoRows(err), err == nil && (!p.CanSeeDevice(d.ConnectedAccountID, d.DeviceID) || d.RemovedAt != nil):
		return deviceNotFound("device_id", id.String())
	case err == nil && !d.IsManaged:
		return deviceUnmanaged()
	}
	return err
}

// sharedPIN generates a PIN that all the devices accept, of the preferred length if possible, else of the
// shortest. It fails with Invalid (code_cannot_be_shared).
func (s *Service) sharedPIN(
	ctx context.Context,
	tx store.Tx,
	ids []uuid.UUID,
	places map[uuid.UUID]place,
	preferred int,
) (string, error) {
	refuse := func(format string, args ...any) error {
		return &domain.Error{
			Kind:  domain.Invalid,
			Type:  "code_cannot_be_shared",
			Field: "device_ids",
			Message: fmt.Sprintf(format, args...) +
				" Leave it out, or give each device a code of its own with " +
				"behavior_when_code_cannot_be_shared create_random_code.",
		}
	}
	var lengths []int
	for _, id := range ids {
		caps := capabilities(places[id].device)
		if caps.ProviderPIN {
			return "", refuse("The vendor of device %s chooses the PINs.", id)
		}
		switch {
		case len(caps.CodeLengths) == 0:
		case lengths == nil:
			lengths = slices.Clone(caps.CodeLengths)
		default:
			lengths = slices.DeleteFunc(lengths, func(n int) bool { return !slices.Contains(caps.CodeLengths, n) })
		}
		if lengths != nil && len(lengths) == 0 {
			return "", refuse("Device %s accepts no code length that the others accept.", id)
		}
	}
	length := 4
	if lengths != nil {
		length = lengths[0]
	}
	if slices.Contains(lengths, preferred) {
		length = preferred
	}
	all := make([]capability.Set, len(ids))
	for i, id := range ids {
		all[i] = capabilities(places[id].device)
	}
	for _, many := range []int{1, 10, 100, 900} { // one is usually enough
		var pins []string
		for range many {
			pin, err := randomPIN(length)
			if err != nil {
				return "", err
			}
			if !slices.ContainsFunc(all, func(caps capability.Set) bool { return !fits(pin, caps) }) {
				pins = append(pins, pin)
			}
		}
		free, err := s.freeOnAll(ctx, tx, ids, places, pins)
		if err != nil {
			return "", err
		}
		if len(free) > 0 {
			return free[0], nil
		}
	}
	return "", refuse("No code was found that all the devices accept.")
}

// freeOnAll returns the PINs that are on none of the devices.
func (s *Service) freeOnAll(
	ctx context.Context,
	tx store.Tx,
	ids []uuid.UUID,
	places map[uuid.UUID]place,
	pins []string,
) ([]string, error) {
	for _, id := range ids {
		if len(pins) == 0 {
			break
		}
		at, err := s.read(ctx, tx, places[id])
		if err != nil {
			return nil, err
		}
		pins = slices.DeleteFunc(pins, at.isTaken)
	}
	return pins, nil
}

// maxSharing is how many codes may have one key: as many as one request can create.
const maxSharing = 500

// joinKey gives a new code the PIN of the existing codes with its key. It fails with Invalid if the request has
// another PIN. A client session can only join codes in its scope and cannot create keys, because the first code
// determines the PIN of all. The key is locked until the end of tx.
func (s *Service) joinKey(ctx context.Context, tx store.Tx, p domain.Principal, n *NewCode) error {
	if n.CommonCodeKey == "" {
		return nil
	}
	if err := tx.LockCommonCode(
		ctx,
		dbsqlc.LockCommonCodeParams{WorkspaceID: p.WorkspaceID.String(), CommonCodeKey: n.CommonCodeKey},
	); err != nil {
		return err
	}
	others, err := tx.CodesOfKey(
		ctx,
		dbsqlc.CodesOfKeyParams{WorkspaceID: p.WorkspaceID, CommonCodeKey: n.CommonCodeKey},
	)
	if err != nil {
		return err
	}
	all, err := reachesAll(ctx, tx, p, others)
	switch {
	case err != nil:
		return err
	case p.Scope != nil && (!all || len(others) == 0): // the message must not reveal whether such codes exist
		return domain.Invalidf(
			"common_code_key",
			"This client session can see no codes with this key, and cannot create keys. Leave it out, or "+
				"create the codes together with /access_codes/create_multiple, which gives them a key",
		)
	case len(others) == 0:
		return nil
	}
	if len(others) >= maxSharing {
		return domain.Invalidf(
			"common_code_key",
			"%d codes have this key, which is the maximum, because they are changed together. Choose another key",
			len(others),
		)
	}
	pin, err := s.pinOf(others[0])
	if err != nil {
		return err
	}
	if pin == "" {
		return domain.Invalidf(
			"common_code_key",
			"The vendor of a device of this key chooses its PINs. Choose another key",
		)
	}
	if n.PIN != "" && n.PIN != pin {
		return domain.Invalidf(
			"common_code_key",
			"The codes of this key have another code. Leave `code` out to share it, or choose another key",
		)
	}
	n.PIN = pin
	return nil
}

// reachesAll reports whether all the codes are in scope.
func reachesAll(ctx context.Context, tx store.Tx, p domain.Principal, codes []dbsqlc.AccessCode) (bool, error) {
	if p.Scope == nil {
		return true, nil
	}
	ids := make([]uuid.UUID, len(codes))
	for i, c := range codes {
		ids[i] = c.DeviceID
	}
	devices, err := tx.DeviceOwners(ctx, ids)
	there := map[uuid.UUID]bool{}
	for _, d := range devices {
		there[d.DeviceID] = p.CanSeeDevice(d.ConnectedAccountID, d.DeviceID)
	}
	return !slices.ContainsFunc(ids, func(id uuid.UUID) bool { return !there[id] }), err
}

// UpdateCodes changes all codes of a key, or none. It fails with NotFound, and like UpdateCode. Errors name the
// device.
func (s *Service) UpdateCodes(ctx context.Context, p domain.Principal, key string, ch CodeChange) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := tx.LockCommonCode(
			ctx,
			dbsqlc.LockCommonCodeParams{WorkspaceID: p.WorkspaceID.String(), CommonCodeKey: key},
		); err != nil {
			return err
		}
		codes, err := tx.CodesOfKey(ctx, dbsqlc.CodesOfKeyParams{WorkspaceID: p.WorkspaceID, CommonCodeKey: key})
		if err != nil {
			return err
		}
		changed := 0
		if all, err := reachesAll(ctx, tx, p, codes); err != nil {
			return err
		} else if !all { // a shared value must change on all of them
			codes = nil
		}
		for _, c := range codes {
			done, err := s.updateShared(ctx, tx, key, c, ch)
			if err != nil {
				return err
			}
			changed += done
		}
		if changed == 0 {
			return &domain.Error{
				Kind:    domain.NotFound,
				Type:    "access_code_not_found",
				Message: "No access code has this common_code_key.",
				Data:    map[string]any{"common_code_key": key},
			}
		}
		return nil
	})
	if _, ok := domain.AsError(err); err != nil && !ok {
		err = fmt.Errorf("change the access codes of a key: %w", err)
	}
	return err
}

// updateShared changes one code of a key. It returns 1, or 0 for a code that has left the key meanwhile.
func (s *Service) updateShared(
	ctx context.Context, tx store.Tx, key string, c dbsqlc.AccessCode, ch CodeChange,
) (int, error) {
	l, err := tx.LockDeviceWithCodes(ctx, c.DeviceID)
	if store.IsNoRows(err) { // erased since, with its codes
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if !l.Device.IsManaged && l.Device.RemovedAt == nil {
		return 0, onDeviceError(deviceUnmanaged(), l.Device.DeviceID)
	}
	t, err := s.load(tx, l)
	if err != nil {
		return 0, err
	}
	code := t.lock.Code(c.AccessCodeID) // the current row
	if code == nil || code.CommonCodeKey != key || code.RemovingSince != nil || code.InPool {
		return 0, nil
	}
	if _, err := t.update(code, ch); err != nil {
		return 0, onDeviceError(err, l.Device.DeviceID)
	}
	return 1, t.write(ctx, tx.Batch)
}
