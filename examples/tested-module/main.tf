terraform {
  required_version = ">= 1.11"

  required_providers {
    deviceaccess = {
      source = "deviceaccess/deviceaccess"
    }
  }
}

variable "lock_name" {
  type        = string
  description = "The name of the lock."
}

variable "guest" {
  type        = string
  description = "Who the code is for."

  validation {
    condition     = trimspace(var.guest) != ""
    error_message = "A guest has a name."
  }
}

data "deviceaccess_device" "lock" {
  name = var.lock_name
}

resource "deviceaccess_access_code" "guest" {
  device_id = data.deviceaccess_device.lock.device_id
  name      = "Guest ${var.guest}"
}

output "access_code_id" {
  value = deviceaccess_access_code.guest.access_code_id
}

output "pin" {
  value     = deviceaccess_access_code.guest.code
  sensitive = true
}
