data "deviceaccess_devices" "august" {
  device_type = "august_lock"
}

# A code for the cleaner on every August lock. The key is the device_id: names can change, and two devices can share one.
resource "deviceaccess_access_code" "cleaner" {
  for_each = { for device in data.deviceaccess_devices.august.devices : device.device_id => device }

  device_id = each.key
  name      = "Cleaner"
}
