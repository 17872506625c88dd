variable "workspace_id" {
  type        = string
  default     = null
  description = "The workspace that the API key must belong to."
}

variable "device_id" {
  type        = string
  description = "The lock."
}

variable "adopted_access_code_id" {
  type        = string
  description = "An unmanaged code on the lock, which the import block adopts: the plan shows it, apply does it."
}

variable "cleaner_pin" {
  type        = string
  sensitive   = true
  description = "The PIN of the cleaner."
}

variable "webhook_url" {
  type        = string
  default     = "http://127.0.0.1:8600/events"
  description = "Where events are sent."
}

variable "event_types" {
  type        = set(string)
  description = "The events to send."

  default = [
    "device.connected",
    "device.disconnected",
    "access_code.unmanaged.converted_to_managed",
    "access_code.unmanaged.failed_to_convert_to_managed",
  ]
}
