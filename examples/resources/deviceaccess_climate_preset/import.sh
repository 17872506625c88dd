# <device_id>/<climate_preset_key>
terraform import deviceaccess_climate_preset.occupied 0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d21/occupied
