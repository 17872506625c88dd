output "workspace" {
  value = "${data.deviceaccess_workspace.this.name} (${data.deviceaccess_workspace.this.workspace_id})"
}

output "webhook" {
  value = deviceaccess_webhook.events.webhook_id
}

# No PIN is shown.
output "access_codes" {
  value = {
    for name, code in {
      cleaner  = deviceaccess_access_code.cleaner
      adopted  = deviceaccess_access_code.adopted
      imported = deviceaccess_access_code.imported
    } : name => { id = code.access_code_id, name = code.name, status = code.status, is_managed = code.is_managed }
  }
}

output "still_unmanaged" {
  value = { for code in data.deviceaccess_unmanaged_access_codes.lock.access_codes : code.access_code_id => code.name }
}
