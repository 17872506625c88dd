data "deviceaccess_device_providers" "all" {}

# The vendors whose locks accept access codes.
output "vendors" {
  value = [
    for vendor in data.deviceaccess_device_providers.all.device_providers :
    vendor.display_name if vendor.can_program_online_access_codes == true
  ]
}
