package domain

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

// NewID returns a new UUID of version 7.
func NewID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// ParseIDs parses identifiers and skips texts that are not UUIDs. A nil list stays nil (no condition). An empty
// list stays empty (matches nothing).
func ParseIDs(texts *[]string) []uuid.UUID {
	if texts == nil {
		return nil
	}
	ids := []uuid.UUID{}
	for _, t := range *texts {
		if id, err := uuid.Parse(t); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// IsID reports whether a text, in upper or lower case, is the identifier.
func IsID(text string, id uuid.UUID) bool {
	parsed, err := uuid.Parse(text)
	return err == nil && parsed == id
}

// ListOf returns the list that p points to. nil stays nil, and a nil list behind p becomes an empty one.
func ListOf[T any](p *[]T) []T {
	if p == nil {
		return nil
	}
	if *p == nil {
		return []T{}
	}
	return *p
}

// NonEmpty returns a pointer to s, or nil for an empty s.
func NonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// maxText is how many bytes of a vendor's text are stored.
const maxText = 1000

// Storable returns a vendor's text without invalid UTF-8 and null characters, cut to the bytes that are stored.
func Storable(s string) string {
	s = s[:min(len(s), maxText)]
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// ValidRef reports whether a vendor's reference can be stored unchanged.
func ValidRef(ref string) bool { return ref != "" && ref == Storable(ref) }

// MustJSON encodes v and panics if that fails. It is for this program's own types only.
func MustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Seconds converts seconds to a duration.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Value returns what p points to, or the zero value if p is nil.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
