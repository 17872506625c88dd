// Package registry registers the vendors that this server can connect. adapter.Vendor says how to add one.
package registry

import (
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/seam"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/tedee"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/ttlock"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zigbee2mqtt"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/zwavejs"
)

// All returns the vendors, in the order of the command line's help.
func All() []adapter.Vendor {
	return []adapter.Vendor{
		zwavejs.Vendor(),
		zigbee2mqtt.Vendor(),
		devicecloud.Vendor(),
		accesscloud.Vendor(),
		seam.Vendor(),
		nuki.Vendor(),
		tedee.Vendor(),
		ttlock.Vendor(),
	}
}
