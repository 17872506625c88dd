data "deviceaccess_devices" "august" {
  device_type = "august_lock"
}

# One PIN for the cleaner on every August lock.
resource "deviceaccess_access_code" "cleaner" {
  for_each = { for device in data.deviceaccess_devices.august.devices : device.display_name => device.device_id }

  device_id = each.value
  name      = "Cleaner"
}
