# Lets the cleaner in as soon as the code is on the lock.
resource "deviceaccess_access_code" "cleaner" {
  device_id = "0190a5f2-6f0a-7b3e-9d41-0c2a5f6f7a10"
  name      = "Cleaner"

  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.deviceaccess_unlock_door.front]
    }
  }
}

# Without a trigger: terraform apply -invoke=action.deviceaccess_unlock_door.front
action "deviceaccess_unlock_door" "front" {
  config {
    device_id = "0190a5f2-6f0a-7b3e-9d41-0c2a5f6f7a10"
  }
}
