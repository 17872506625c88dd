data "deviceaccess_access_codes" "front_door" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
}

# Codes that are not on the lock: scheduled, pending, rejected by the lock, or on a lock that was removed.
output "not_set" {
  value = {
    for code in data.deviceaccess_access_codes.front_door.access_codes :
    code.access_code_id => code.status if !contains(["set", "removing"], code.status)
  }
}
