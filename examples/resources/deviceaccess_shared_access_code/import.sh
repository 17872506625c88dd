# <device_id>/<access_code_id> for each lock, separated by commas. The import changes nothing; the next apply converts
# unmanaged codes, and changes those that differ from the first. The plan names the locks whose PIN will change.
terraform import deviceaccess_shared_access_code.nanny 0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11/0190a5f2-77aa-7e02-b1c9-95d2e8f4a6c3,0190a5f2-2e8c-7d66-8d13-7b5a6c1f9e22/0190a5f2-88bb-7f13-82da-a6e3f9a5b7d4
