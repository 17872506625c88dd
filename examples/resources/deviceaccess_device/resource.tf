resource "deviceaccess_device" "front_door" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name      = "Front Door"

  auto_lock_enabled       = true
  auto_lock_delay_seconds = 30
}
