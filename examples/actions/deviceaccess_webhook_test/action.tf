# Fails the apply that creates the webhook if the receiver does not accept a test event.
resource "deviceaccess_webhook" "doors" {
  url = "https://example.com/door-events"

  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.deviceaccess_webhook_test.doors]
    }
  }
}

action "deviceaccess_webhook_test" "doors" {
  config {
    webhook_id = deviceaccess_webhook.doors.webhook_id
  }
}
