# schedules.tfquery.hcl: terraform query -generate-config-out=schedules.tf
list "deviceaccess_thermostat_schedule" "all" {
  provider = deviceaccess
  limit    = 1000
}
