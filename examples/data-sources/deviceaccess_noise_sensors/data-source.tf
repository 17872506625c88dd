data "deviceaccess_noise_sensors" "all" {}

resource "deviceaccess_noise_threshold" "night" {
  for_each = { for sensor in data.deviceaccess_noise_sensors.all.noise_sensors : sensor.device_id => sensor }

  device_id                = each.key
  name                     = "Night at ${each.value.display_name}"
  starts_daily_at          = "22:00:00"
  ends_daily_at            = "07:00:00"
  noise_threshold_decibels = 60
}
