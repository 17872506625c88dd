package rest

import (
	"context"
	"slices"
	"strings"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// offeredProviders returns the vendors that can be connected in the caller's workspace: the simulated ones in a sandbox,
// else those of Options.Connectable.
func (h *handlers) offeredProviders(ctx context.Context) ([]api.DeviceProvider, error) {
	w, err := h.access.Accounts.GetWorkspace(ctx, principal(ctx).WorkspaceID)
	if err != nil {
		return nil, err
	}
	if w.IsSandbox {
		return slices.DeleteFunc(slices.Clone(deviceProviders()), func(p api.DeviceProvider) bool {
			return p.CanSimulateConnection != nil && !*p.CanSimulateConnection
		}), nil
	}
	out := []api.DeviceProvider{}
	for _, v := range h.connectable {
		if !v.Protocol {
			out = append(out, toRegisteredProvider(v))
		}
	}
	slices.SortFunc(out, func(a, b api.DeviceProvider) int {
		return strings.Compare(a.DeviceProviderName, b.DeviceProviderName)
	})
	return out, nil
}

// toRegisteredProvider describes a vendor of real devices.
func toRegisteredProvider(v adapter.Vendor) api.DeviceProvider {
	picture, _ := pictureOf(v.Accepts[0])
	if v.IsAccessSystem() {
		picture = systemPicture
	}
	p := api.DeviceProvider{
		DeviceProviderName: v.Name,
		DisplayName:        v.DisplayName,
		ImageURL:           picture,
		ProviderCategories: v.Categories,
	}
	if v.IsAccessSystem() {
		return p
	}
	p.CanProgramOnlineAccessCodes = new(v.Can.OnlineCodes)
	p.CanProgramOfflineAccessCodes = new(v.Can.OfflineCodes)
	p.CanUnlockWithCode = new(v.Can.OnlineCodes || v.Can.OfflineCodes)
	p.CanRemotelyLock = new(v.Can.Lock)
	p.CanRemotelyUnlock = new(v.Can.Unlock)
	p.CanConfigureAutoLock = new(v.Can.AutoLock)
	for _, never := range []**bool{
		&p.CanSimulateConnection,
		&p.CanSimulateDisconnection,
		&p.CanSimulateRemoval,
		&p.CanSimulateHubConnection,
		&p.CanSimulateHubDisconnection,
		&p.CanSimulatePaidSubscription,
	} {
		*never = new(false)
	}
	return p
}

// accountType returns the account type of the API and its name for people.
func (h *handlers) accountType(a account.ConnectedAccount) (name, display string) {
	if a.Provider != "" {
		display, _ = Provider(a.Provider)
		return a.Provider, display
	}
	if i := slices.IndexFunc(h.vendors, func(v adapter.Vendor) bool { return v.Adapter == a.Adapter }); i >= 0 {
		return h.vendors[i].Name, h.vendors[i].DisplayName
	}
	kind := accountTypes[a.Adapter]
	return kind.name, kind.display
}

// accountWarnings returns the warnings of an account: about its adapter, and those that the adapter found.
func (h *handlers) accountWarnings(a account.ConnectedAccount) []api.Problem {
	list := a.Warnings
	i := slices.IndexFunc(h.vendors, func(v adapter.Vendor) bool { return v.Adapter == a.Adapter })
	if i >= 0 && h.vendors[i].Verification.IsReadOnly() {
		list = append(list, domain.Problem{
			Code: "adapter_not_verified",
			Message: "How this server reaches " + h.vendors[i].DisplayName + " was tested " +
				h.vendors[i].Verification.String() + ". New devices start out unmanaged.",
			Scope: domain.OfAccount,
			At:    a.CreatedAt,
		})
	}
	return toWarnings(list)
}
