data "deviceaccess_device" "front_door" {
  name = "Front Door"
}

resource "deviceaccess_access_code" "cleaner" {
  device_id = data.deviceaccess_device.front_door.device_id
  name      = "Cleaner"
}
