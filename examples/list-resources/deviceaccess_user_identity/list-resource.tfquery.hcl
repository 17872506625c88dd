# people.tfquery.hcl: terraform query -generate-config-out=people.tf
list "deviceaccess_user_identity" "all" {
  provider = deviceaccess
  limit    = 1000
}
