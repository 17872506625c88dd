# thresholds.tfquery.hcl: terraform query -generate-config-out=thresholds.tf
list "deviceaccess_noise_threshold" "all" {
  provider = deviceaccess
  limit    = 1000
}
