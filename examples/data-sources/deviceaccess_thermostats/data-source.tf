data "deviceaccess_thermostats" "all" {}

# Thermostats that can heat and cool.
locals {
  both = [
    for t in data.deviceaccess_thermostats.all.thermostats : t
    if contains(t.available_hvac_mode_settings, "heat_cool")
  ]
}

resource "deviceaccess_climate_preset" "occupied" {
  for_each = { for t in local.both : t.device_id => t }

  device_id                 = each.key
  climate_preset_key        = "occupied"
  hvac_mode_setting         = "heat_cool"
  heating_set_point_celsius = max(20, each.value.min_heating_set_point_celsius)
  cooling_set_point_celsius = 25
}
