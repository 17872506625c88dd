package lockstate

import "github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"

// A device that lists no codes cannot show the result of an uncertain creation. To remove such a code, the server
// repeats the creation under the same idempotency key. The vendor answers with the existing code or creates it now, and
// either way returns its reference, so that the server can remove it. The server retries for about ten minutes while
// the vendor fails. A refusal ends the search, and the write counts as failed after its confirmation timeout.

// maxFindAttempts is how often the server repeats an uncertain creation whose vendor fails, with growing backoff.
const maxFindAttempts = 8

// canRepeatCreate reports whether the server must repeat the creation of an uncertain code before it counts as gone.
func (c *Code) canRepeatCreate(caps capability.Set) bool {
	return !caps.ListCodes && c.Managed && c.Ref == "" && c.WriteGen > 0 && c.Attempts < maxFindAttempts
}

// findExhausted reports whether the search for an uncertain code that must leave failed and the code cannot arrive.
func (l *Lock) findExhausted(c *Code) bool {
	return !l.caps().ListCodes && c.Ref == "" && l.leaving(c) && !c.canRepeatCreate(l.caps()) && !l.onItsWay(c)
}

// recordFound records the vendor's answer to a repeated creation.
func (l *Lock) recordFound(c *Code, o Outcome) {
	switch {
	case c.Ref != "":
	case o.Ref != "":
		l.claim(o.Ref)
		c.Ref = o.Ref
		c.clearWrite()
		c.Attempts, c.NextAttemptAt = 0, nil
	case o.Failure.Class == FailedForNow:
		l.retryLater(c, o.Failure.RetryAfter)
	default:
		c.Attempts, c.NextAttemptAt = maxFindAttempts, nil
	}
}
