package access

import (
	"context"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// giveUp ends the attempts whose time is over.
func (t *deviceTx) giveUp(ctx context.Context) error {
	for _, late := range []struct {
		what    func(dbsqlc.ActionAttempt) bool
		message string
	}{
		{func(a dbsqlc.ActionAttempt) bool { return a.ActionType == ConfigureAutoLock },
			"The device did not confirm in time. Look at auto_lock_enabled in its properties before you try again."},
		{movesBolt, "The device did not confirm in time. Look where its bolt is before you try again."},
		{func(dbsqlc.ActionAttempt) bool { return true }, t.expired()},
	} {
		over := func(a dbsqlc.ActionAttempt) bool { return t.late(a) && late.what(a) }
		if err := t.end(ctx, over, Failed, "action_attempt_expired", late.message); err != nil {
			return err
		}
	}
	return nil
}

func (t *deviceTx) expired() string {
	if !t.d.Online {
		return "The device was offline all the time. It is still done when the device returns."
	}
	return "The device did not confirm in time. It is tried further."
}

// unconverted is expired of a conversion, with which nobody goes on.
func (t *deviceTx) unconverted() string {
	if !t.d.Online {
		return "The device was offline all the time. The code stays as it is, unmanaged; convert it when the device is back."
	}
	return "The device could not be read in time. The code stays as it is, unmanaged; convert it once more."
}
