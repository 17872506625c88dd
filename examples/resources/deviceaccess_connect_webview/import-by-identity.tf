import {
  to = deviceaccess_connect_webview.owner
  identity = {
    connect_webview_id = "0190a5f2-4c1e-7b33-8d21-3f0e5a9b7c44"
  }
}

resource "deviceaccess_connect_webview" "owner" {
  custom_redirect_url = "https://rentals.example.com/connected"
}
