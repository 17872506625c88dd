package store

// MigrateFrom is Migrate with the migrations of another file system.
var MigrateFrom = migrate

// ResetInterval is the minimum interval between two resets of the pools.
const ResetInterval = resetInterval
