package domain

// Lanes of the keys that changes wake.
const (
	DeviceLane  = "device"
	AccountLane = "account"
)

// Lanes of the keys that events wake: the outbox of a workspace, and a webhook with due deliveries.
const (
	OutboxLane   = "outbox"
	EndpointLane = "endpoint"
)

// RetentionLane is the lane of the retention of a workspace. It deletes rotated secrets, old events with their
// deliveries, ended client sessions, and expired attempts on the workspace.
const RetentionLane = "retention"
