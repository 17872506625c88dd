data "deviceaccess_unmanaged_access_codes" "front_door" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
}

# The codes that can be adopted, by name and without PINs.
output "not_yet_managed" {
  value = {
    for code in data.deviceaccess_unmanaged_access_codes.front_door.access_codes :
    code.access_code_id => code.name if !code.cannot_be_managed
  }
}
