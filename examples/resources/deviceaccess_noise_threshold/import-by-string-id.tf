import {
  to = deviceaccess_noise_threshold.night
  id = "0190a5f2-6c3e-7b52-8a14-3d5e7f9b2c46"
}
