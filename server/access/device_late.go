package access

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// expireAttempts fails the attempts that are past their deadline.
func (t *deviceTx) expireAttempts(ctx context.Context) error {
	for _, late := range []struct {
		what    func(dbsqlc.ActionAttempt) bool
		message string
	}{
		{func(a dbsqlc.ActionAttempt) bool { return a.ActionType == ConfigureAutoLock },
			"The device did not confirm in time. Look at auto_lock_enabled in its properties before you try again."},
		{movesBolt, "The device did not confirm in time. Look at its locked property before you try again."},
		{func(dbsqlc.ActionAttempt) bool { return true }, t.expired()},
	} {
		over := func(a dbsqlc.ActionAttempt) bool { return t.pastDeadline(a) && late.what(a) }
		if err := t.end(ctx, over, Failed, "action_attempt_expired", late.message); err != nil {
			return err
		}
	}
	return nil
}

// expired returns the message of an expired attempt.
func (t *deviceTx) expired() string {
	if !t.d.Online {
		return "The device was offline all the time. The server applies the change when the device is back."
	}
	return "The device did not confirm in time. The server keeps retrying."
}

// unconverted is expired for a conversion, which the server does not retry.
func (t *deviceTx) unconverted() string {
	if !t.d.Online {
		return "The device was offline all the time. " +
			"The code stays unmanaged. Convert it when the device is back."
	}
	return "The device could not be read in time. The code stays unmanaged. Convert it again."
}
