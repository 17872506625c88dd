variable "front_door" {
  description = "The device_id of the lock."
  type        = string
}

variable "guest_pin" {
  description = "The guest's PIN."
  type        = string
  sensitive   = true
}

variable "cleaner_code_id" {
  description = "The access_code_id of an unmanaged code on the lock."
  type        = string
}

variable "event_types" {
  description = "The events that the webhook receives."
  type        = set(string)
  default     = ["access_code.set_on_device", "access_code.removed_from_device"]
}
