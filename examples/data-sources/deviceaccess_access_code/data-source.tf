data "deviceaccess_access_code" "cleaner" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name      = "Cleaner"
}

check "cleaner" {
  assert {
    condition     = !contains(data.deviceaccess_access_code.cleaner.errors[*].error_code, "device_offline")
    error_message = "The lock is offline, so the cleaner may stand before a closed door."
  }
}
