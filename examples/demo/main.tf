# The configuration of `make demo`. With a running server (`make server`) and its `export` lines in the shell, you can
# also plan and apply it by hand.

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

# Receives events of the lock.
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

# A code that is already on the lock. The plan previews its conversion; the apply converts it.
import {
  to = deviceaccess_access_code.cleaner
  id = "${var.front_door}/${var.cleaner_code_id}"
}

resource "deviceaccess_access_code" "cleaner" {
  device_id = var.front_door
}

# Another one. `terraform import deviceaccess_access_code.neighbour <access_code_id>` converts it immediately.
resource "deviceaccess_access_code" "neighbour" {
  device_id = var.front_door
}

# Unmanaged codes that are left after the adoption of those two; depends_on reads them after the apply.
data "deviceaccess_unmanaged_access_codes" "front_door" {
  device_id  = var.front_door
  depends_on = [deviceaccess_access_code.cleaner, deviceaccess_access_code.neighbour]
}
