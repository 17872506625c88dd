package api

import "encoding/json"

// Change is what becomes of a value that may be taken away: the zero Change, which is left out of a request, lets it
// be; one that is Given sets it, or with To nil (null on the wire) takes it away.
type Change[T any] struct {
	Given bool
	To    *T
}

func (c Change[T]) MarshalJSON() ([]byte, error) { return json.Marshal(c.To) }

// UnmarshalJSON is called for what is there, also for null.
func (c *Change[T]) UnmarshalJSON(encoded []byte) error {
	c.Given, c.To = true, nil
	return json.Unmarshal(encoded, &c.To)
}
