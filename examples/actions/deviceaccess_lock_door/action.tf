# terraform apply -invoke=action.deviceaccess_lock_door.front
action "deviceaccess_lock_door" "front" {
  config {
    device_id = "0190a5f2-6f0a-7b3e-9d41-0c2a5f6f7a10"

    timeouts {
      invoke = "1m"
    }
  }
}
