package access

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// A creation that nobody knows the end of shows in no list of a device that has none. A code of which that is so and that is to leave is
// created once more under the same key: the vendor answers with the code that it made then, or makes it now, and either way says where it
// is. Then it is taken off as any other. A vendor that goes on failing is asked for some ten minutes, as others wait; one that refuses does not
// know, and is not asked again: the write counts as come to nothing once its time is over, as it did not show.

// findTries is how often a creation in doubt is repeated whose vendor fails, with growing pauses.
const findTries = 8

// findable says whether a code in doubt is to be asked for before it counts as gone.
func findable(c dbsqlc.AccessCode, caps Capabilities) bool {
	return !caps.ListCodes && c.IsManaged && c.VendorRef == nil && c.WriteGen > 0 && int(c.Attempts) < findTries
}

// unfound says whether a code in doubt that is to leave was asked for in vain, and can arrive no more.
func (t *deviceTx) unfound(c *dbsqlc.AccessCode) bool {
	return !t.caps.ListCodes && c.VendorRef == nil && t.leaving(c) && !findable(*c, t.caps) && !t.onItsWay(c)
}

// RecordFindStarted notes, before a creation in doubt is repeated in order to be taken back, that this is about to happen: it may arrive
// from then on. It says whether the code still is to leave so.
func (s *Service) RecordFindStarted(ctx context.Context, h Holder, device uuid.UUID, w CodeWork) (still bool, err error) {
	err = s.onDevice(ctx, h, device, "record the search of a code", func(t *deviceTx) error {
		c := t.code(w.ID)
		still = c != nil && t.leaving(c) && findable(*c, t.caps) && t.d.RemovedAt == nil && (t.d.IsManaged || c.InPool)
		if still {
			c.WriteAt = &t.now
		}
		return nil
	})
	return still, err
}

// RecordFound notes what the vendor has answered to a creation that was repeated in order to be taken back.
func (s *Service) RecordFound(ctx context.Context, h Holder, device uuid.UUID, w CodeWork, o PutOutcome) error {
	return s.onDevice(ctx, h, device, "record where a code is", func(t *deviceTx) error {
		c := t.code(w.ID)
		if c == nil || c.VendorRef != nil {
			return nil
		}
		o.check()
		switch {
		case o.Ref != "":
			if err := t.claim(ctx, o.Ref); err != nil {
				return err
			}
			c.VendorRef, c.WriteGen, c.WriteAt, c.WriteAccepted = &o.Ref, 0, nil, false
			c.Attempts, c.NextAttemptAt = 0, nil
		case o.Failure.Class == FailedForNow:
			c.Attempts++
			next := t.now.Add(max(backoff(int(c.Attempts)), o.Failure.RetryAfter))
			c.NextAttemptAt = &next
		default:
			c.Attempts, c.NextAttemptAt = findTries, nil
		}
		return nil
	})
}
