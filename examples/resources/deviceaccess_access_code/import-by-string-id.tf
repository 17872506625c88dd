# Terraform imports while it plans. With the device_id in front, the plan changes nothing.
import {
  to = deviceaccess_access_code.plumber
  id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11/0190a5f2-77aa-7e02-b1c9-95d2e8f4a6c3"
}

resource "deviceaccess_access_code" "plumber" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
}
