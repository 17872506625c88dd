import {
  to = deviceaccess_webhook.audit
  identity = {
    webhook_id = "0190a5f2-4c1e-7b33-8d21-3f0e5a9b7c44"
  }
}

resource "deviceaccess_webhook" "audit" {
  url = "https://hooks.example.com/audit"
}
