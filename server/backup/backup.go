// Package backup is the file that a backup is: a compressed tar archive that begins with a manifest and ends with the
// checksums of all that is in it. Common tools can look into it: tar -xzf FILE, and sha256sum --check SHA256SUMS.
//
// It must not know what a database is.
package backup

import (
	"errors"
	"time"
)

// Format is the version of the file.
const Format = 1

// Names in the archive.
const (
	manifestName = "manifest.json"
	sumsName     = "SHA256SUMS"
)

// Manifest says what a backup is of.
type Manifest struct {
	Format        int       `json:"format"`
	CreatedAt     time.Time `json:"created_at"`
	Program       string    `json:"program"`  // the version that has made it
	Platform      string    `json:"platform"` // such as linux/amd64: the database's files are of it
	Postgres      string    `json:"postgres"` // such as 15.13
	PostgresMajor int       `json:"postgres_major"`
	Schema        int64     `json:"schema"` // the newest migration
	KeyIncluded   bool      `json:"master_key_included"`
}

// ErrDamaged says that a file is no backup, or not the whole and unchanged one.
var ErrDamaged = errors.New("the backup is damaged: it was cut off or changed, or is something else")
