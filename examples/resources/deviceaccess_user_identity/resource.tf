resource "deviceaccess_user_identity" "jane" {
  user_identity_key = "employee-4711"
  full_name         = "Jane Doe"
  email_address     = "jane@example.com"
  phone_number      = "+15555550100"
}
