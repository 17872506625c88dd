package adapter

import (
	"slices"
	"time"
)

// maxSentCodes bounds the attempts that SentCodes remembers.
const maxSentCodes = 8

// SentCodes remembers what the attempts of one creation sent to a vendor that stores no keys. It recognizes the created
// code in a list when the response was lost. Other people may choose the same PIN, so a code is only recognized if its
// PIN, name, and time frame were sent in one attempt, and if no list showed it before that attempt. The zero value
// remembers nothing.
type SentCodes struct{ attempts []sentCode }

type sentCode struct {
	pin, name        string
	startsAt, endsAt *time.Time
	before           []CodeRef
}

// With returns s with another attempt, unless s has one that sent the same. before are the codes that were listed before
// the attempt and have its PIN or its name; the adapter may omit the others.
func (s SentCodes) With(spec CodeSpec, before ...CodeRef) SentCodes {
	if slices.ContainsFunc(s.attempts, func(sent sentCode) bool { return sent.equals(spec) }) {
		return s
	}
	attempts := append(slices.Clone(s.attempts), sentCode{spec.PIN, spec.Name, spec.StartsAt, spec.EndsAt, before})
	return SentCodes{attempts[max(0, len(attempts)-maxSentCodes):]}
}

// Has reports whether one of the attempts created the code.
func (s SentCodes) Has(c Code) bool {
	listed := CodeSpec{PIN: c.PIN, Name: c.Name, StartsAt: c.StartsAt, EndsAt: c.EndsAt}
	return c.PIN != "" && slices.ContainsFunc(s.attempts, func(sent sentCode) bool {
		return sent.equals(listed) && !slices.Contains(sent.before, c.Ref)
	})
}

func (s sentCode) equals(spec CodeSpec) bool {
	return s.pin == spec.PIN && s.name == spec.Name &&
		sameSecond(s.startsAt, spec.StartsAt) && sameSecond(s.endsAt, spec.EndsAt)
}

// sameSecond compares times without their fractions, which a vendor may not store.
func sameSecond(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Truncate(time.Second).Equal(b.Truncate(time.Second))
}
