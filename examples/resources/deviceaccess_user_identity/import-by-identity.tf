import {
  to = deviceaccess_user_identity.joe
  identity = {
    user_identity_id = "0190a5f2-6d3a-7f10-8b55-0c9e7d2a4b18"
  }
}

resource "deviceaccess_user_identity" "joe" {
  full_name = "Joe Roe"
}
