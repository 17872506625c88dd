data "deviceaccess_webhooks" "all" {}

output "receivers" {
  value = { for webhook in data.deviceaccess_webhooks.all.webhooks : webhook.webhook_id => webhook.url }
}
