# codes.tfquery.hcl: terraform query -generate-config-out=adopted.tf
list "deviceaccess_access_code" "to_adopt" {
  provider = deviceaccess
  limit    = 1000

  config {
    management = "unmanaged"
  }
}
