data "deviceaccess_connected_account" "owner" {
  user_identifier = "jane@example.com"
}

check "owner" {
  assert {
    condition     = !contains(data.deviceaccess_connected_account.owner.errors[*].error_code, "account_disconnected")
    error_message = "The owner must log in again."
  }
}
