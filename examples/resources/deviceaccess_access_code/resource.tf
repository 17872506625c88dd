variable "cleaner_pin" {
  type      = string
  sensitive = true
}

# Opens always, with a PIN of your own.
resource "deviceaccess_access_code" "cleaner" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name      = "Cleaner"
  code      = var.cleaner_pin
}

# Opens for a weekend, with a PIN that the server makes.
resource "deviceaccess_access_code" "guest" {
  device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  name      = "Guest"
  starts_at = "2030-06-07T15:00:00+02:00"
  ends_at   = "2030-06-09T11:00:00+02:00"

  timeouts {
    create = "10m" # a lock that is often offline
  }
}
