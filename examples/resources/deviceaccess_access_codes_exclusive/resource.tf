resource "deviceaccess_access_code" "owner" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name      = "Owner"
}

# Deletes every other code on the lock after a plan has shown it.
resource "deviceaccess_access_codes_exclusive" "front_door" {
  device_id       = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  access_code_ids = [deviceaccess_access_code.owner.access_code_id]
}
