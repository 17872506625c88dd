import {
  to = deviceaccess_thermostat_schedule.stay
  id = "0190a5f2-5b2d-7a41-9f03-2c4d6e8a1b35"
}
