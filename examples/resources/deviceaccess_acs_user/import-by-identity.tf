import {
  to = deviceaccess_acs_user.joe
  identity = {
    acs_user_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d13"
  }
}

resource "deviceaccess_acs_user" "joe" {
  acs_system_id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  full_name     = "Joe Roe"
}
