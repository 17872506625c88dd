import {
  to = deviceaccess_thermostat_schedule.holidays
  identity = {
    thermostat_schedule_id = "0190a5f2-5b2d-7a41-9f03-2c4d6e8a1b35"
  }
}

resource "deviceaccess_thermostat_schedule" "holidays" {
  device_id          = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d21"
  climate_preset_key = "away"
  starts_at          = "2030-12-20T12:00:00Z"
  ends_at            = "2031-01-06T12:00:00Z"
}
