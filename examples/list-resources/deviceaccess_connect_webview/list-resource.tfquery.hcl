# pages.tfquery.hcl: terraform query -generate-config-out=pages.tf
list "deviceaccess_connect_webview" "all" {
  provider = deviceaccess
  limit    = 1000
}
