data "deviceaccess_connected_accounts" "all" {}

check "accounts" {
  assert {
    condition     = alltrue([for account in data.deviceaccess_connected_accounts.all.connected_accounts : length(account.problems) == 0])
    error_message = "An account does not work: its locks cannot be reached."
  }
}
