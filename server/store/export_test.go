package store

// MigrateFrom is Migrate with the migrations of another file system.
var MigrateFrom = migrate
