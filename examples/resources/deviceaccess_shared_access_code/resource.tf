data "deviceaccess_devices" "locks" {
  search = "Oak Street"
}

# The same PIN on every lock of the house.
resource "deviceaccess_shared_access_code" "nanny" {
  device_ids = [for lock in data.deviceaccess_devices.locks.devices : lock.device_id]
  name       = "Nanny"

  lifecycle {
    # Fails this run and later ones until every lock has the code. Without it, a lock that does not take the new code
    # is a warning, so that the other locks keep theirs. Do not use it with wait_until_on_lock = false.
    postcondition {
      condition     = alltrue([for code in self.access_codes : code.as_declared && code.status != "setting"])
      error_message = "Not every lock has the code."
    }
  }
}
