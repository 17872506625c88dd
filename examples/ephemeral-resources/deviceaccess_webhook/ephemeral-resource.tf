# Neither the plan nor the state contains the secret.
resource "deviceaccess_webhook" "doors" {
  url            = "https://example.com/door-events"
  store_secret   = false
  secret_version = 1
}

ephemeral "deviceaccess_webhook" "doors" {
  webhook_id = deviceaccess_webhook.doors.webhook_id
}

# resource "aws_secretsmanager_secret_version" "doors" {
#   secret_id                = aws_secretsmanager_secret.doors.id
#   secret_string_wo         = ephemeral.deviceaccess_webhook.doors.secret
#   secret_string_wo_version = deviceaccess_webhook.doors.secret_version
# }
