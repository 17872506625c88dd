# devices.tfquery.hcl: terraform query -generate-config-out=devices.tf
list "deviceaccess_device" "all" {
  provider = deviceaccess
  limit    = 1000
}
