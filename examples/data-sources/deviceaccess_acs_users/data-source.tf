variable "acs_system_id" {
  type = string
}

data "deviceaccess_acs_users" "office" {
  acs_system_id = var.acs_system_id
}

check "users" {
  assert {
    condition     = alltrue([for user in data.deviceaccess_acs_users.office.acs_users : length(user.problems) == 0])
    error_message = "The access system does not have a user as it should be."
  }
}
