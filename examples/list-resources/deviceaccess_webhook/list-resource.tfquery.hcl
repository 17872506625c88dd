# webhooks.tfquery.hcl: terraform query -generate-config-out=webhooks.tf
list "deviceaccess_webhook" "all" {
  provider = deviceaccess
  limit    = 1000
}
