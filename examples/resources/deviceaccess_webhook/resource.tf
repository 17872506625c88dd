resource "deviceaccess_webhook" "doors" {
  url = "https://example.com/door-events"

  event_types = [
    "device.connected",
    "device.disconnected",
    "access_code.unmanaged.converted_to_managed",
    "access_code.unmanaged.failed_to_convert_to_managed",
  ]

  lifecycle {
    # A new url replaces the webhook: keep the old one until the server has accepted the new one.
    create_before_destroy = true
  }
}

# The receiver needs the secret to verify signatures.
output "webhook_secret" {
  value     = deviceaccess_webhook.doors.secret
  sensitive = true
}
