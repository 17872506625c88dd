# <device_id>. The import changes nothing; the next plan shows which codes apply would delete.
terraform import deviceaccess_access_codes_exclusive.front_door 0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d11
