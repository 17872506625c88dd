package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
)

// planDevice returns a device from the list of all devices, or why it is missing. Both are nil if that is not known.
func (c *connection) planDevice(ctx context.Context, id string) (*api.Device, *missingDevice) {
	if device := c.reads.Device(ctx, id); device != nil {
		return device, nil
	}
	devices, ok := c.reads.Devices(ctx)
	if !ok {
		tflog.Debug(ctx, "the plan is not checked against the lock, because the devices cannot be listed",
			map[string]any{"device_id": id})
		return nil, nil
	}
	c.checks.searches.Lock()
	defer c.checks.searches.Unlock()
	missing, known := c.checks.missing[id]
	if !known {
		if c.checks.missing == nil {
			c.checks.missing = map[string]missingDevice{}
		}
		missing = c.findMissing(ctx, id, devices)
		c.checks.missing[id] = missing
	}
	if missing.isUncertain || missing.device != nil {
		return missing.device, nil
	}
	return nil, &missing
}

// missingDevice is a device_id that is not on the list of devices.
type missingDevice struct {
	id          string
	device      *api.Device // the list lacks a device that the server has
	isUncertain bool        // the server's answer does not say that there is no such device
	isUnmanaged bool
	isMalformed bool     // the server takes identifiers of another form
	named       []string // identifiers of the devices with that name
}

// findMissing asks the server for a device that is not on its list.
func (c *connection) findMissing(ctx context.Context, id string, devices []api.Device) missingDevice {
	missing := missingDevice{id: id}
	for _, device := range devices {
		if id == device.DisplayName || id == device.Nickname || id == device.Properties.Name {
			missing.named = append(missing.named, device.DeviceID)
		}
	}
	slices.Sort(missing.named)
	if missing.named != nil {
		return missing
	}
	device, err := deviceByID(ctx, c.api, id)
	switch {
	case err == nil:
		missing.device = device
	case hasWrongID(err):
		missing.isMalformed = true
	case !api.IsNotFound(err):
		missing.isUncertain = true
	default:
		_, err := api.Call[api.UnmanagedDeviceResponse](
			ctx,
			c.api.GetUnmanagedDevice,
			api.GetDeviceRequest{DeviceID: id},
		)
		missing.isUnmanaged = err == nil
	}
	return missing
}

// isMistake reports whether the text cannot be the identifier of a device. Any other missing device may have been
// removed by its owner, which must not block the plan of everything else.
func (m *missingDevice) isMistake() bool { return m.named != nil || m.isMalformed }

// report adds an error at the attribute if the text is no identifier, and a warning otherwise.
func (m *missingDevice) report(diags *diag.Diagnostics, at path.Path) {
	add := diagnostics.WarningAt
	if m.isMistake() {
		add = diagnostics.ErrorAt
	}
	attribute := at.Steps()[0].String()
	switch {
	case len(m.named) == 1:
		add(diags, at, "Name instead of an identifier", fmt.Sprintf("%q is the name of a device, and `%s` takes "+
			"identifiers. Write %q, or use the data source deviceaccess_device with `name = %[1]q`.",
			m.id, attribute, m.named[0]))
	case len(m.named) > 1:
		add(diags, at, "Name instead of an identifier", fmt.Sprintf("%q is the name of %d devices, and `%s` takes "+
			"identifiers. Write the identifier of one of them: %s.",
			m.id, len(m.named), attribute, strings.Join(m.named, ", ")))
	case m.isUnmanaged:
		add(diags, at, "Device is not managed", fmt.Sprintf("The workspace of the API key does not manage the "+
			"device %q. Applying this plan fails unless the device is managed by then.", m.id))
	case m.isMalformed:
		add(diags, at, "Invalid identifier", fmt.Sprintf("%q is neither the identifier nor the name of a device. "+
			"The data source deviceaccess_devices lists the devices.", m.id))
	default:
		add(diags, at, "Device not found", fmt.Sprintf("The workspace of the API key has no device %q. Applying "+
			"this plan fails for it. Check the identifier, and that the API key belongs to the right workspace. If "+
			"the lock was removed, remove its code from the configuration.", m.id))
	}
}
