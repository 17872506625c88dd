package domain

import (
	"time"

	"github.com/google/uuid"
)

// Position is a place in a list ordered by creation: after the row of that time and identifier. The zero
// Position is the start.
type Position struct {
	At time.Time
	ID uuid.UUID
}

// Page asks for at most Limit rows after a Position.
type Page struct {
	After Position
	Limit int
}

// Rows returns the LIMIT for the query. It is one more than the page holds, to find out whether another page
// follows.
func (p Page) Rows() int32 { return int32(min(max(p.Limit, 1), 1<<30) + 1) }

// Cut returns the rows that belong to the page, and whether more follow.
func Cut[T any](p Page, rows []T) ([]T, bool) {
	if len(rows) > p.Limit {
		return rows[:p.Limit], true
	}
	return rows, false
}
