package device

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// RefreshDevice makes a managed device due, so that the server reads its state and its codes now. It fails with
// NotFound, and with Invalid (device_unmanaged).
func (s *Service) RefreshDevice(ctx context.Context, p domain.Principal, id string) error {
	device, err := uuid.Parse(id)
	if err != nil {
		return deviceNotFound("device_id", id)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := lockManagedDevice(ctx, tx, p, device); err != nil {
			return err
		}
		return s.accounts.WakeDevice(ctx, tx, device, true)
	})
	return domain.Wrap(err, "refresh device "+device.String())
}
