# What `make demo` applies. It is ordinary Terraform: with a server running (`make server`) and its `export`
# lines in the shell, it can be planned and applied by hand as well.

terraform {
  required_version = ">= 1.11"
  required_providers {
    deviceaccess = {
      source = "deviceaccess/deviceaccess"
    }
  }
}

# Takes DEVICEACCESS_ENDPOINT and DEVICEACCESS_API_KEY from the environment.
provider "deviceaccess" {}

data "deviceaccess_workspace" "here" {}

# Events of the lock go here.
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

# A code that is on the lock already. The plan shows that it will be converted; apply does it.
import {
  to = deviceaccess_access_code.cleaner
  id = "${var.front_door}/${var.cleaner_code_id}"
}

resource "deviceaccess_access_code" "cleaner" {
  device_id = var.front_door
}

# Another one, brought in by `terraform import deviceaccess_access_code.neighbour <access_code_id>`, which
# converts it at once.
resource "deviceaccess_access_code" "neighbour" {
  device_id = var.front_door
}

# What nobody manages once those two are adopted. Read earlier, the list would be out of date after the apply.
data "deviceaccess_unmanaged_access_codes" "front_door" {
  device_id  = var.front_door
  depends_on = [deviceaccess_access_code.cleaner, deviceaccess_access_code.neighbour]
}
