package app

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// ManageDevices makes the server manage the unmanaged devices of an account, and its new devices. It returns how many
// devices have become managed. Each device changes in its own transaction: after an error, another call continues.
func (a *Admin) ManageDevices(ctx context.Context, one account.Account) (managed int, err error) {
	// New devices first, so that none is missed.
	if err := a.Access.Accounts.AllowWrites(ctx, one.ID, true); err != nil {
		return 0, err
	}
	p := domain.Principal{WorkspaceID: one.WorkspaceID}
	yes := true
	id := one.ID.String()
	unmanaged := device.Filter{AccountIDs: &[]string{id}, Unmanaged: true}
	for {
		page, more, err := a.Access.Devices.ListDevices(ctx, p, unmanaged, domain.Page{Limit: managePage})
		if err != nil {
			return managed, err
		}
		for _, d := range page {
			err := a.Access.Devices.UpdateUnmanagedDevice(ctx, p, d.ID.String(), device.Change{Managed: &yes})
			if e, ok := domain.AsError(err); ok && (e.Type == "device_managed" || e.Kind == domain.NotFound) {
				continue // a concurrent change
			}
			if err != nil {
				return managed, err
			}
			managed++
		}
		if !more {
			return managed, nil
		}
	}
}

// managePage is the number of devices that ManageDevices reads at once.
const managePage = 100
