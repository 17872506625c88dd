import {
  to = deviceaccess_climate_preset.occupied
  id = "0190a5f2-1d7b-7c55-9c02-6a4f5b0e8d21/occupied"
}
