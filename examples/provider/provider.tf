terraform {
  required_providers {
    deviceaccess = {
      source = "deviceaccess/deviceaccess"
    }
  }
}

# The key and the address come from DEVICEACCESS_API_KEY and DEVICEACCESS_ENDPOINT.
provider "deviceaccess" {
  # Rejects a key of another workspace before it reads anything.
  workspace_id = "2f6b0c54-6f0a-4b3e-9d41-0c2a5f6f7a10"
}
