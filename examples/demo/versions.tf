terraform {
  required_version = ">= 1.7"

  required_providers {
    deviceaccess = {
      source = "deviceaccess/deviceaccess"
    }
  }
}

# DEVICEACCESS_ENDPOINT and DEVICEACCESS_API_KEY say which server, and as whom.
provider "deviceaccess" {
  workspace_id = var.workspace_id
}
