package rest

import (
	"errors"
	"fmt"
	"io"
)

// Limits on parsed JSON. In memory, a value of one byte takes fifty.
const (
	maxValues = 20_000 // values and object members of a body
	maxDepth  = 64
)

var errExcess = errors.New("the JSON exceeds a limit")

// limitedJSON reads JSON until it exceeds a limit, so that a megabyte of brackets is rejected early.
type limitedJSON struct {
	io.Reader
	problem string // the exceeded limit; empty if none

	values, depth   int
	quoted, escaped bool
}

func (m *limitedJSON) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if m.problem = m.excess(p[:n]); m.problem != "" {
		return n, errExcess
	}
	return n, err
}

// excess returns the limit that more exceeds, or an empty string.
func (m *limitedJSON) excess(more []byte) string {
	for _, c := range more {
		switch {
		case m.escaped:
			m.escaped = false
		case m.quoted && c == '\\':
			m.escaped = true
		case c == '"':
			m.quoted = !m.quoted
		case m.quoted:
		case c == '{' || c == '[':
			if m.depth++; m.depth > maxDepth {
				return fmt.Sprintf("The body is nested more than %d deep", maxDepth)
			}
			m.values++
		case c == '}' || c == ']':
			m.depth--
		case c == ',':
			m.values++
		}
		if m.values > maxValues {
			return fmt.Sprintf("The body has more than %d values; split it", maxValues)
		}
	}
	return ""
}
