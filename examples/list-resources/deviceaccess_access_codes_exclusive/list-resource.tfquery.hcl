# locks.tfquery.hcl: terraform query -generate-config-out=locks.tf
list "deviceaccess_access_codes_exclusive" "all" {
  provider = deviceaccess
  limit    = 1000
}
