# The secret has leaked: terraform apply -invoke=action.deviceaccess_webhook_rotate_secret.leaked
action "deviceaccess_webhook_rotate_secret" "leaked" {
  config {
    webhook_id = "0190a5f2-4c1e-7b33-8d21-3f0e5a9b7c44"
    overlap    = "0s"
  }
}
