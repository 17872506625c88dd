variable "cleaner_pin" {
  type      = string
  sensitive = true
}

# Opens at any time, with a PIN of your own.
resource "deviceaccess_access_code" "cleaner" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name      = "Cleaner"
  code      = var.cleaner_pin
}

# Opens for a weekend, with a PIN that the server generates.
resource "deviceaccess_access_code" "guest" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name      = "Guest"
  starts_at = "2030-06-07T15:00:00+02:00"
  ends_at   = "2030-06-09T11:00:00+02:00"

  timeouts {
    create = "10m" # a lock that is often offline
  }
}

# Has backup codes on the lock, which you can pull if this code fails.
resource "deviceaccess_access_code" "handyman" {
  device_id                   = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name                        = "Handyman"
  starts_at                   = "2030-06-10T08:00:00+02:00"
  ends_at                     = "2030-06-10T18:00:00+02:00"
  use_backup_access_code_pool = true
}

# Issued by the vendor, for a lock without a connection. It can't be changed or deleted before it ends.
resource "deviceaccess_access_code" "cabin" {
  device_id              = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d12"
  name                   = "Cabin"
  starts_at              = "2030-06-07T15:00:00+02:00"
  ends_at                = "2030-06-09T11:00:00+02:00"
  is_offline_access_code = true
}
