# users.tfquery.hcl: terraform query -generate-config-out=users.tf
list "deviceaccess_acs_user" "office" {
  provider = deviceaccess
  limit    = 1000

  config {
    acs_system_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  }
}
