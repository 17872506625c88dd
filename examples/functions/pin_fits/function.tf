data "deviceaccess_device" "front_door" {
  name = "Front Door"
}

variable "pin" {
  type      = string
  sensitive = true
}

resource "deviceaccess_access_code" "guest" {
  device_id = data.deviceaccess_device.front_door.device_id
  name      = "Guest"
  code      = var.pin

  lifecycle {
    precondition {
      condition     = provider::deviceaccess::pin_fits(data.deviceaccess_device.front_door, var.pin)
      error_message = "The front door does not accept this PIN: see supported_code_lengths and code_constraints."
    }
  }
}

# Terraform 1.9 or newer. The error of a validation shows the value, even if the variable is sensitive.
variable "demo_pin" {
  type    = string
  default = "4815"

  validation {
    condition     = provider::deviceaccess::pin_fits(data.deviceaccess_device.front_door, var.demo_pin)
    error_message = "The front door does not accept this PIN."
  }
}
