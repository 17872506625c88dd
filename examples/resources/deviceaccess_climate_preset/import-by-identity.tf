import {
  to = deviceaccess_climate_preset.away
  identity = {
    device_id          = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d21"
    climate_preset_key = "away"
  }
}

resource "deviceaccess_climate_preset" "away" {
  device_id                 = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d21"
  climate_preset_key        = "away"
  hvac_mode_setting         = "heat"
  heating_set_point_celsius = 16
}
