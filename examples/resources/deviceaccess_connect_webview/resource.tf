resource "deviceaccess_connect_webview" "owner" {
  customer_key        = "oak-street-7"
  provider_category   = "consumer_smartlocks"
  custom_redirect_url = "https://rentals.example.com/connected"

  custom_metadata = {
    property = "Oak Street 7"
  }
}

# Only for the homeowner: terraform output -raw invitation
output "invitation" {
  value     = deviceaccess_connect_webview.owner.url
  sensitive = true
}

# Exists after the homeowner's login and the next refresh.
data "deviceaccess_devices" "of_the_owner" {
  count                = deviceaccess_connect_webview.owner.login_successful ? 1 : 0
  connected_account_id = deviceaccess_connect_webview.owner.connected_account_id
}
