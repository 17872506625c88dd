package api

import "encoding/json"

// Some servers leave out of an access code what the operation or its time frame tells. It is put in here, once for all
// who read codes.

// UnmarshalJSON takes a code for managed that does not say so.
func (c *AccessCode) UnmarshalJSON(encoded []byte) error {
	type plain AccessCode
	decoded := plain{IsManaged: true}
	err := json.Unmarshal(encoded, &decoded)
	*c = AccessCode(decoded)
	c.Type = c.Type.or(c.StartsAt != nil || c.EndsAt != nil)
	return err
}

// UnmarshalJSON gives a code its type that does not say it.
func (c *UnmanagedAccessCode) UnmarshalJSON(encoded []byte) error {
	type plain UnmanagedAccessCode
	err := json.Unmarshal(encoded, (*plain)(c))
	c.Type = c.Type.or(c.StartsAt != nil || c.EndsAt != nil)
	return err
}

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
