# presets.tfquery.hcl: terraform query -generate-config-out=presets.tf
list "deviceaccess_climate_preset" "house" {
  provider = deviceaccess
  limit    = 1000

  config {
    device_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d21"
  }
}
