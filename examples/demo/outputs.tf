output "workspace" {
  value = data.deviceaccess_workspace.here.name
}

output "codes_of_others" {
  description = "How many codes on the lock nobody manages."
  value       = length(data.deviceaccess_unmanaged_access_codes.front_door.access_codes)
}

output "guest_status" {
  value = deviceaccess_access_code.guest.status
}
