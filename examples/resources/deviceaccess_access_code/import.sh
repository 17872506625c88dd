# <device_id>/<access_code_id> changes nothing. The next plan previews the conversion, and the apply converts the code.
terraform import deviceaccess_access_code.plumber 0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11/0190a5f2-77aa-7e02-b1c9-95d2e8f4a6c3

# <access_code_id> alone converts an unmanaged code immediately.
terraform import deviceaccess_access_code.plumber 0190a5f2-77aa-7e02-b1c9-95d2e8f4a6c3
