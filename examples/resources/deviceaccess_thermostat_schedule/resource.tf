resource "deviceaccess_climate_preset" "occupied" {
  device_id                 = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d21"
  climate_preset_key        = "occupied"
  hvac_mode_setting         = "heat"
  heating_set_point_celsius = 21
}

resource "deviceaccess_thermostat_schedule" "stay" {
  device_id          = deviceaccess_climate_preset.occupied.device_id
  climate_preset_key = deviceaccess_climate_preset.occupied.climate_preset_key
  name               = "Stay 17"
  starts_at          = "2030-06-01T15:00:00+02:00"
  ends_at            = "2030-06-08T11:00:00+02:00"

  # Guests can change the temperature for two hours.
  is_override_allowed         = true
  max_override_period_minutes = 120
}
