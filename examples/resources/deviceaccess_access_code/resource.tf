variable "cleaner_pin" {
  type      = string
  sensitive = true
}

# Opens always, with your own PIN.
resource "deviceaccess_access_code" "cleaner" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name      = "Cleaner"
  code      = var.cleaner_pin
}

# Opens for a weekend, with a PIN that the server chooses.
resource "deviceaccess_access_code" "guest" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name      = "Guest"
  starts_at = "2030-06-07T15:00:00+02:00"
  ends_at   = "2030-06-09T11:00:00+02:00"

  timeouts {
    create = "10m" # a lock that is often offline
  }
}

# Has backup codes on the lock, one of which can replace it if it does not work.
resource "deviceaccess_access_code" "handyman" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name      = "Handyman"
  starts_at = "2030-06-10T08:00:00+02:00"
  ends_at   = "2030-06-10T18:00:00+02:00"
  backup    = { use_pool = true }
}

# Computed by the lock's vendor, for a lock without a connection. It can be neither changed nor deleted until it ends.
resource "deviceaccess_access_code" "cabin" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d12"
  name      = "Cabin"
  starts_at = "2030-06-07T15:00:00+02:00"
  ends_at   = "2030-06-09T11:00:00+02:00"
  offline   = {}
}

# Warns in every plan and apply while the lock is offline.
check "guest_is_on_the_lock" {
  assert {
    condition     = !contains(deviceaccess_access_code.guest.errors[*].error_code, "device_offline")
    error_message = "The lock of the guest's code is offline."
  }
}
