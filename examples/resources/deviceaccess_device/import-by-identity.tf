import {
  to = deviceaccess_device.back_door
  identity = {
    device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  }
}

resource "deviceaccess_device" "back_door" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
}
