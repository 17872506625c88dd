# Uses the server in DEVICEACCESS_ENDPOINT with the key in DEVICEACCESS_API_KEY, and simulated locks.

variables {
  lock_name = "Front Door"
  guest     = "Ada"
}

run "a_guest_gets_a_code" {
  assert {
    condition     = deviceaccess_access_code.guest.status == "set"
    error_message = "The code is not on the lock."
  }

  assert {
    condition     = contains(data.deviceaccess_device.lock.supported_code_lengths, length(output.pin))
    error_message = "The lock takes no PIN of this length."
  }
}

run "another_name_keeps_the_code" {
  variables {
    guest = "Grace"
  }

  assert {
    condition     = output.access_code_id == run.a_guest_gets_a_code.access_code_id
    error_message = "The code was replaced."
  }

  assert {
    condition     = deviceaccess_access_code.guest.name == "Guest Grace"
    error_message = "The code has another name."
  }
}

run "a_guest_has_a_name" {
  command = plan

  variables {
    guest = " "
  }

  expect_failures = [var.guest]
}
