package reconcile

// Describe puts an adapter's device into the words of package access.
var Describe = describe
