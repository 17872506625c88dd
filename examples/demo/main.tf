# `make demo` applies this configuration. To apply it yourself, start a server with `make server` and run the export lines
# that it prints.

terraform {
  required_version = ">= 1.11"
  required_providers {
    deviceaccess = {
      source = "deviceaccess/deviceaccess"
    }
  }
}

# Reads DEVICEACCESS_ENDPOINT and DEVICEACCESS_API_KEY from the environment.
provider "deviceaccess" {}

data "deviceaccess_workspace" "here" {}

# Receives the events of the lock.
resource "deviceaccess_webhook" "audit" {
  url         = "https://hooks.example.com/device-access"
  event_types = var.event_types
}

# A new code.
resource "deviceaccess_access_code" "guest" {
  device_id = var.front_door
  name      = "Guest"
  code      = var.guest_pin
}

# A code that is already on the lock. The plan shows the conversion, and apply converts it.
import {
  to = deviceaccess_access_code.cleaner
  id = "${var.front_door}/${var.cleaner_code_id}"
}

resource "deviceaccess_access_code" "cleaner" {
  device_id = var.front_door
}

# Another code, imported by `terraform import deviceaccess_access_code.neighbour <access_code_id>`, which converts it
# immediately.
resource "deviceaccess_access_code" "neighbour" {
  device_id = var.front_door
}

# The codes that stay unmanaged after those two are adopted. Read earlier, the list would be outdated after the apply.
data "deviceaccess_unmanaged_access_codes" "front_door" {
  device_id  = var.front_door
  depends_on = [deviceaccess_access_code.cleaner, deviceaccess_access_code.neighbour]
}
