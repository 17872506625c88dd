# An identity names the lock, too, so the plan changes nothing.
import {
  to = deviceaccess_access_code.gardener
  identity = {
    access_code_id = "0190a5f2-77aa-7e02-b1c9-95d2e8f4a6c3"
    device_id      = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  }
}

resource "deviceaccess_access_code" "gardener" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
}
