resource "deviceaccess_user_identity" "jane" {
  full_name     = "Jane Doe"
  email_address = "jane@example.com"
}

resource "deviceaccess_acs_user" "jane" {
  acs_system_id        = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11"
  user_identity_id     = deviceaccess_user_identity.jane.user_identity_id
  full_name            = deviceaccess_user_identity.jane.full_name
  email_address        = deviceaccess_user_identity.jane.email_address
  acs_access_group_ids = ["0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d12"]

  starts_at = "2030-06-01T08:00:00Z"
  ends_at   = "2030-09-01T18:00:00Z"
}
