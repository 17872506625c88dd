# A PIN that the server chose. Passed to a write-only argument, it is in neither the plan nor the state.
ephemeral "deviceaccess_access_code" "guest" {
  access_code_id = "0190a5f2-77aa-7e02-b1c9-95d2e8f4a6c3"
}

# resource "aws_secretsmanager_secret_version" "guest_pin" {
#   secret_id                = aws_secretsmanager_secret.guest_pin.id
#   secret_string_wo         = ephemeral.deviceaccess_access_code.guest.code
#   secret_string_wo_version = 1
# }
