package reconcile

// Describe converts an adapter's device to the type of package access.
var Describe = toFoundDevice
