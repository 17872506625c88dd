output "workspace" {
  value = data.deviceaccess_workspace.here.name
}

output "codes_of_others" {
  description = "The unmanaged codes on the lock, by identifier, without PINs."
  value       = { for code in data.deviceaccess_unmanaged_access_codes.front_door.access_codes : code.access_code_id => code.name }
}

output "guest_status" {
  value = deviceaccess_access_code.guest.status
}
