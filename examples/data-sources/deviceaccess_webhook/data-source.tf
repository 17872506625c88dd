data "deviceaccess_webhook" "doors" {
  url = "https://example.com/door-events"
}

check "doors" {
  assert {
    condition     = data.deviceaccess_webhook.doors.disabled != true
    error_message = "The server has stopped sending events of the doors."
  }
}
