data "deviceaccess_devices" "locks" {
  search = "Oak Street"
}

# The same PIN on every lock of the house.
resource "deviceaccess_access_code_set" "nanny" {
  device_ids = [for lock in data.deviceaccess_devices.locks.devices : lock.device_id]
  name       = "Nanny"

  lifecycle {
    # Fails the run until every lock has the code. Without this condition, a lock that fails at creation is a warning. With
    # wait_for_set = false, the condition fails while a code is being set.
    postcondition {
      condition     = alltrue([for code in self.access_codes : code.as_declared && code.status != "setting"])
      error_message = "Not every lock has the code."
    }
  }
}
