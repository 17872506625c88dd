import {
  to = deviceaccess_noise_threshold.day
  identity = {
    noise_threshold_id = "0190a5f2-6c3e-7b52-8a14-3d5e7f9b2c46"
  }
}

resource "deviceaccess_noise_threshold" "day" {
  device_id                = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d22"
  starts_daily_at          = "07:00:00"
  ends_daily_at            = "22:00:00"
  noise_threshold_decibels = 75
}
