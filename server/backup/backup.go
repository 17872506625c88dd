// Package backup reads and writes backup files. A backup is a compressed tar archive that starts with a manifest and
// ends with the checksums of its files. Common tools can inspect it: tar -xzf FILE, and sha256sum --check SHA256SUMS.
//
// The package must not know what a database is.
package backup

import (
	"errors"
	"time"
)

// Format is the version of the file format.
const Format = 1

// Names in the archive.
const (
	manifestName = "manifest.json"
	sumsName     = "SHA256SUMS"
)

// Manifest describes a backup.
type Manifest struct {
	// Format is the version of the file format; see the constant Format.
	Format int `json:"format"`
	// CreatedAt is when the backup started.
	CreatedAt time.Time `json:"created_at"`
	// Program is the version of the program that created the backup.
	Program string `json:"program"`
	// Platform is such as linux/amd64. The database's files work on this platform only.
	Platform string `json:"platform"`
	// Postgres is the version of PostgreSQL, such as 15.13.
	Postgres string `json:"postgres"`
	// PostgresMajor is the major version of PostgreSQL.
	PostgresMajor int `json:"postgres_major"`
	// Schema is the newest migration.
	Schema int64 `json:"schema"`
	// KeyIncluded is true if the backup contains the master key.
	KeyIncluded bool `json:"master_key_included"`
}

// ErrDamaged reports that a file is not a complete and unchanged backup.
var ErrDamaged = errors.New("the backup is damaged: it is truncated, was changed, or is another kind of file")
