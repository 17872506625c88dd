data "deviceaccess_workspace" "this" {}

resource "deviceaccess_webhook" "events" {
  url         = var.webhook_url
  event_types = var.event_types
}

# A code that Terraform creates.
resource "deviceaccess_access_code" "cleaner" {
  device_id = var.device_id
  name      = "Night Cleaner"
  code      = var.cleaner_pin
}

# A code that is on the lock already. The plan shows that it is imported and converted, and apply does it. Its name
# and its PIN stay.
import {
  to = deviceaccess_access_code.adopted
  id = "${var.device_id}/${var.adopted_access_code_id}"
}

resource "deviceaccess_access_code" "adopted" {
  device_id = var.device_id
}

# What is left unmanaged once the codes above are adopted. Read before, the list would be out of date at once.
data "deviceaccess_unmanaged_access_codes" "lock" {
  device_id  = var.device_id
  depends_on = [deviceaccess_access_code.adopted, deviceaccess_access_code.imported]
}
