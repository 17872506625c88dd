# <device_id>/<access_code_id> changes nothing: the next plan shows the changes of the code, and apply makes them.
terraform import deviceaccess_access_code.plumber 0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11/0190a5f2-77aa-7e02-b1c9-95d2e8f4a6c3

# <access_code_id> alone immediately converts an unmanaged code to managed.
terraform import deviceaccess_access_code.plumber 0190a5f2-77aa-7e02-b1c9-95d2e8f4a6c3
