data "deviceaccess_workspace" "this" {}

output "workspace" {
  value = data.deviceaccess_workspace.this.name
}
