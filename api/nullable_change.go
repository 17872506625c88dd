package api

import "encoding/json"

// Change is a change of a value that can be removed. The zero Change is omitted from requests and leaves the value
// unchanged.
type Change[T any] struct {
	// Given reports whether the value changes.
	Given bool
	// To is the new value. Nil, which is null in JSON, removes the value.
	To *T
}

// MarshalJSON encodes the new value.
func (c Change[T]) MarshalJSON() ([]byte, error) { return json.Marshal(c.To) }

// UnmarshalJSON decodes a value that is present, including null.
func (c *Change[T]) UnmarshalJSON(encoded []byte) error {
	c.Given, c.To = true, nil
	return json.Unmarshal(encoded, &c.To)
}
