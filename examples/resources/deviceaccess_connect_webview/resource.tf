resource "deviceaccess_connect_webview" "owner" {
  customer_key        = "oak-street-7"
  provider_category   = "consumer_smartlocks"
  custom_redirect_url = "https://rentals.example.com/connected"

  custom_metadata = {
    property = "Oak Street 7"
  }
}

# For the homeowner only: terraform output -raw invitation
output "invitation" {
  value     = deviceaccess_connect_webview.owner.url
  sensitive = true
}

# Available after the homeowner has logged in, and after a refresh.
data "deviceaccess_devices" "of_the_owner" {
  count                = deviceaccess_connect_webview.owner.login_successful ? 1 : 0
  connected_account_id = deviceaccess_connect_webview.owner.connected_account_id
}
