package provider

import (
	"context"
	"iter"

	"github.com/hashicorp/terraform-plugin-framework/list"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// listResults converts records to results of terraform query, up to its limit. An error ends the results and is a
// result itself: Terraform drops errors that are reported in other ways.
func listResults[T any](
	ctx context.Context,
	req list.ListRequest,
	action string,
	records iter.Seq2[T, error],
	fill func(T, *list.ListResult),
) iter.Seq[list.ListResult] {
	return func(push func(list.ListResult) bool) {
		pushed := int64(0)
		for record, err := range records {
			if err != nil {
				var failed list.ListResult
				report(&failed.Diagnostics, action, err)
				push(failed)
				return
			}
			result := req.NewListResult(ctx)
			fill(record, &result)
			pushed++
			if !push(result) || pushed == req.Limit {
				return
			}
		}
	}
}

// deviceRecord is a record of a device, such as a schedule, with the device.
type deviceRecord[T any] struct {
	record T
	device api.Device
}

// devicesWith yields the device with an identifier, or all devices if it is empty.
func devicesWith(devices iter.Seq2[api.Device, error], id string) iter.Seq2[api.Device, error] {
	return func(yield func(api.Device, error) bool) {
		for device, err := range devices {
			if (err != nil || id == "" || device.DeviceID == id) && !yield(device, err) {
				return
			}
		}
	}
}

// recordsOfDevices yields the records of devices, one device after the other. An error ends them.
func recordsOfDevices[T any](
	devices iter.Seq2[api.Device, error],
	records func(api.Device) iter.Seq2[T, error],
) iter.Seq2[deviceRecord[T], error] {
	return func(yield func(deviceRecord[T], error) bool) {
		for device, err := range devices {
			if err != nil {
				yield(deviceRecord[T]{}, err)
				return
			}
			for record, err := range records(device) {
				if !yield(deviceRecord[T]{record, device}, err) || err != nil {
					return
				}
			}
		}
	}
}
