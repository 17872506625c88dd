resource "deviceaccess_climate_preset" "occupied" {
  device_id          = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d21"
  climate_preset_key = "occupied"
  name               = "Guests"

  hvac_mode_setting            = "heat_cool"
  heating_set_point_fahrenheit = 68
  cooling_set_point_fahrenheit = 75
  fan_mode_setting             = "auto"

  # With another key, schedules change before the former preset is deleted.
  lifecycle {
    create_before_destroy = true
  }
}
