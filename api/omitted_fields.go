package api

import "encoding/json"

// Some servers omit fields of access codes that follow from the operation or the time frame. Decoding fills them in.

// UnmarshalJSON decodes a code. A code without is_managed is managed, and a missing type follows from the time frame.
func (c *AccessCode) UnmarshalJSON(encoded []byte) error {
	type plain AccessCode
	decoded := plain{IsManaged: true}
	err := json.Unmarshal(encoded, &decoded)
	*c = AccessCode(decoded)
	c.Type = c.Type.or(c.StartsAt != nil || c.EndsAt != nil)
	return err
}

// UnmarshalJSON decodes a code. A missing type follows from the time frame.
func (c *UnmanagedAccessCode) UnmarshalJSON(encoded []byte) error {
	type plain UnmanagedAccessCode
	err := json.Unmarshal(encoded, (*plain)(c))
	c.Type = c.Type.or(c.StartsAt != nil || c.EndsAt != nil)
	return err
}

// or returns the type, or the type that follows from timeBound if it is empty.
func (t AccessCodeType) or(timeBound bool) AccessCodeType {
	switch {
	case t != "":
		return t
	case timeBound:
		return TimeBound
	default:
		return Ongoing
	}
}
