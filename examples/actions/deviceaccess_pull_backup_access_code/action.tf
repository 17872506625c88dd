# terraform apply -invoke=action.deviceaccess_pull_backup_access_code.guest
action "deviceaccess_pull_backup_access_code" "guest" {
  config {
    access_code_id = "0190a5f2-77aa-7e02-b1c9-95d2e8f4a6c3"
  }
}
