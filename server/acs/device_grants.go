package acs

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// GrantDevice lets the client sessions of a person see and use a managed device, in addition to the devices of their
// accounts. Granting it again changes nothing. It fails with NotFound for the identity and for the device.
func (s *Service) GrantDevice(ctx context.Context, p domain.Principal, identity, deviceID string) error {
	// It also checks the scope of the caller.
	d, err := s.devices.GetDevice(ctx, p, deviceID, "")
	if err != nil {
		return err
	}
	removed := false
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		i, err := findIdentity(ctx, tx.Queries, p, identity, "")
		if err == nil {
			err = holdIdentity(ctx, tx, i)
		}
		if err != nil {
			return err
		}
		n, err := tx.GrantDeviceToIdentity(ctx, dbsqlc.GrantDeviceToIdentityParams{
			UserIdentityID: i.UserIdentityID,
			WorkspaceID:    p.WorkspaceID,
			DeviceID:       d.ID,
		})
		removed = n == 0
		return err
	})
	if err == nil && removed {
		_, err = s.devices.GetDevice(ctx, p, deviceID, "")
	}
	return domain.Wrap(err, "grant access to a device")
}

// RevokeDevice ends the access of a person to a device. It takes effect immediately, because each request reads its
// scope. Revoking an access that does not exist changes nothing. It fails with NotFound for the identity and for the
// device.
func (s *Service) RevokeDevice(ctx context.Context, p domain.Principal, identity, deviceID string) error {
	i, err := findIdentity(ctx, s.db.Queries, p, identity, "")
	if err != nil {
		return err
	}
	// A removed device keeps its grants, so that they return with it. They can be revoked all the same.
	if id, err := uuid.Parse(deviceID); err == nil {
		n, err := s.db.RevokeDeviceOfIdentity(ctx,
			dbsqlc.RevokeDeviceOfIdentityParams{UserIdentityID: i.UserIdentityID, DeviceID: id})
		if err != nil {
			return fmt.Errorf("revoke the access to device %s: %w", id, err)
		}
		if n > 0 {
			return nil
		}
	}
	_, err = s.devices.GetDevice(ctx, p, deviceID, "")
	return err
}

// DevicesOf lists the managed devices that a person was given access to, oldest first. It fails with NotFound.
func (s *Service) DevicesOf(ctx context.Context, p domain.Principal, identity string) ([]device.Device, error) {
	i, err := findIdentity(ctx, s.db.Queries, p, identity, "")
	if err != nil {
		return nil, err
	}
	granted, err := s.db.DevicesOfIdentity(ctx, i.UserIdentityID)
	if err != nil {
		return nil, fmt.Errorf("list the devices of user identity %s: %w", i.UserIdentityID, err)
	}
	ids := make([]string, len(granted))
	for n, id := range granted {
		ids[n] = id.String()
	}
	out, _, err := s.devices.ListDevices(ctx, p, device.Filter{IDs: &ids}, everything)
	return out, err
}

// EntrancesOf lists the entrances that the users of a person can pass, oldest first. The schedules and the suspensions
// of the users further restrict the access. It fails with NotFound.
func (s *Service) EntrancesOf(ctx context.Context, p domain.Principal, identity string) ([]Entrance, error) {
	i, err := s.visibleIdentity(ctx, p, identity, "")
	if err != nil {
		return nil, err
	}
	rows, err := s.db.ListAcsEntrancesOfIdentity(ctx, dbsqlc.ListAcsEntrancesOfIdentityParams{
		WorkspaceID:    p.WorkspaceID,
		UserIdentityID: i.UserIdentityID,
		Scope:          p.Scope,
	})
	if err != nil {
		return nil, fmt.Errorf("list the entrances of user identity %s: %w", i.UserIdentityID, err)
	}
	out := make([]Entrance, len(rows))
	for n, r := range rows {
		out[n] = toEntrance(r.AcsEntrance, r.ConnectedAccountID)
	}
	return out, nil
}
