# Another code that is on the lock already. Import it before the first apply, which would otherwise create one:
#
#   terraform import deviceaccess_access_code.imported <access_code_id>
#
# The bare identifier converts it at once.
resource "deviceaccess_access_code" "imported" {
  device_id = var.device_id
}
