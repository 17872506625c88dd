import {
  to = deviceaccess_access_codes_exclusive.back_door
  identity = {
    device_id = "0190a5f2-2e8c-7d66-8d13-7b5a6c1f9e22"
  }
}

resource "deviceaccess_access_codes_exclusive" "back_door" {
  device_id       = "0190a5f2-2e8c-7d66-8d13-7b5a6c1f9e22"
  access_code_ids = ["0190a5f2-88bb-7f13-82da-a6e3f9a5b7d4"]
}
