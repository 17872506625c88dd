package reconcile

// Describe converts an adapter's device to the type of package device.
var Describe = toFoundDevice

// ToObservedClimate is toObservedClimate.
var ToObservedClimate = toObservedClimate
