package rest

import (
	"errors"
	"fmt"
	"io"
)

// The most that is read into memory, where a value of one byte takes fifty.
const (
	maxValues = 20_000 // of a body, and members of its objects
	maxDepth  = 64
)

var errExcess = errors.New("more JSON than is read")

// measured reads JSON, if it is that at all, until it is too much: who sends a megabyte of brackets is refused after the
// first of them.
type measured struct {
	io.Reader
	problem string // what is too much; empty: nothing

	values, depth   int
	quoted, escaped bool
}

func (m *measured) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if m.problem = m.excess(p[:n]); m.problem != "" {
		return n, errExcess
	}
	return n, err
}

// excess says what is too much once more has come; empty: nothing.
func (m *measured) excess(more []byte) string {
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
