resource "deviceaccess_noise_threshold" "night" {
  device_id                = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d22"
  name                     = "Night"
  starts_daily_at          = "22:00:00[Europe/Paris]"
  ends_daily_at            = "07:00:00[Europe/Paris]"
  noise_threshold_decibels = 60
}
