package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

const actionImport = "Import access code"

// ImportState takes three forms. <device_id>/<access_code_id> and an identity change nothing: Read looks the code up, and apply
// converts it if need be. A bare <access_code_id> converts an unmanaged code at once, which the setting
// convert_on_import can forbid: import blocks are imported while planning.
func (r *accessCodeResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if r.cannotImport(req, resp) {
		return
	}
	if req.ID == "" {
		r.importIdentity(ctx, req, resp)
		return
	}
	deviceID, id, hasDevice := strings.Cut(req.ID, "/")
	if !hasDevice {
		id = req.ID
	}
	if id == "" || hasDevice && deviceID == "" || strings.ContainsAny(id, "/ ") {
		refuse(&resp.Diagnostics, actionImport,
			fmt.Sprintf("%q is neither `<access_code_id>` nor `<device_id>/<access_code_id>`. %s", req.ID, whereIdentifiersAre))
		return
	}
	if !hasDevice {
		if deviceID = r.importBare(ctx, id, &resp.Diagnostics); deviceID == "" {
			return
		}
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("access_code_id"), id)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("device_id"), deviceID)...)
}

// whereIdentifiersAre is where to look for what to import.
const whereIdentifiersAre = "Write `<device_id>/<access_code_id>`: the data source deviceaccess_devices lists devices, and deviceaccess_unmanaged_access_codes and " +
	"deviceaccess_access_codes list the codes on one."

// nothingToImport says that there is no such code on the lock. Left to itself, Terraform would say something of regions.
func nothingToImport(ctx context.Context, client *api.Client, deviceID, id string) string {
	if _, err := deviceByID(ctx, client, id); err == nil {
		return fmt.Sprintf("%s is a device, and no access code. Is the order right? Write `<device_id>/<access_code_id>`, here %[1]s/%[2]s.", id, deviceID)
	}
	return fmt.Sprintf("There is no access code %s on the device %s, neither managed nor unmanaged. Is the order right? %s", id, deviceID, whereIdentifiersAre)
}

// importBare makes sure that the code is managed, and answers its device, or "" and an error in diags.
func (r *accessCodeResource) importBare(ctx context.Context, id string, diags *diag.Diagnostics) (deviceID string) {
	client := r.client(diags)
	if client == nil {
		return ""
	}
	managed, err := managedCode(ctx, client, id)
	if err == nil {
		return managed.DeviceID
	}
	if !api.IsNotFound(err) {
		report(diags, actionImport, err)
		return ""
	}
	unmanaged, err := unmanagedCode(ctx, client, "", id)
	switch {
	case api.IsNoRoute(err): // the server reads unmanaged codes by device only, so what remains is to try
	case err != nil:
		report(diags, actionImport, err)
		return ""
	case unmanaged == nil:
		refuse(diags, actionImport, "There is no access code "+id+" in the workspace of the API key, neither managed nor unmanaged.")
		return ""
	case unmanaged.CannotBeManaged:
		reportNext(diags, actionImport, errCannotBeManaged, notImported)
		return ""
	}
	if !r.convertOnImport {
		refuse(diags, actionImport, fmt.Sprintf("The code %s is not managed by the workspace, and convert_on_import is off. Import %s/%s instead: "+
			"that changes nothing by itself, the plan shows the conversion, and apply does it.", id, deviceOf(unmanaged), id))
		return ""
	}
	return r.convertNow(ctx, client, id, diags)
}

func (r *accessCodeResource) convertNow(ctx context.Context, client *api.Client, id string, diags *diag.Diagnostics) (deviceID string) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout) // there is no configuration in an import
	defer cancel()
	code, err := convertCode(ctx, client, api.ConvertAccessCodeRequest{AccessCodeID: id})
	if err != nil {
		next := conversionAdvice(err)
		switch next {
		case stayUnmanaged:
			next = notImported
		case makesAnother:
			next = noneToImport
		}
		reportNext(diags, "Convert access code to managed", err, next)
		return ""
	}
	warn(diags, "Access code converted to managed during import",
		fmt.Sprintf("The code %s was not managed by the workspace, and is from now on. To see a conversion in the plan before it happens, import %s/%s.",
			id, code.DeviceID, id))
	return code.DeviceID
}

// conversionAdvice is what can be done when a conversion has failed.
func conversionAdvice(err error) string {
	const again = "The code is still unmanaged. Run Terraform again when the lock is online; a conversion that has happened in the meantime is noticed."
	switch {
	case isOfType(err, "access_code_being_deleted"):
		return makesAnother
	case errors.Is(err, errCannotBeManaged), api.StatusOf(err) == 400, api.StatusOf(err) == 409:
		return stayUnmanaged
	case nextStep(err) != "":
		return nextStep(err)
	default:
		return again
	}
}

func deviceOf(code *api.UnmanagedAccessCode) string {
	if code == nil {
		return "<device_id>"
	}
	return code.DeviceID
}
