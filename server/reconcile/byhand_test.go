package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/devicecloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// byHand is a bed without an engine: the test says what is read from the device and what becomes of
// writes, in the order that hurts.
type byHand struct{ *bed }

// holder is the lease of a test, which nobody disputes.
type holder struct{}

func (holder) Check(context.Context, store.Tx) error { return nil }

func hand(t *testing.T, o options) byHand {
	t.Helper()
	b := prepare(t, o)
	h := byHand{b}
	cloud := devicecloud.New(devicecloud.Config{BaseURL: b.cloud.URL, Token: b.token})
	t.Cleanup(func() { b.must(cloud.Close()) })
	devices, err := cloud.Devices(t.Context())
	b.must(err)
	b.must(b.access.RecordDevices(t.Context(), holder{}, b.account, []access.FoundDevice{reconcile.Describe(devices[0], true)}))
	known, _, err := b.access.ListDevices(t.Context(), b.p, access.DeviceFilter{}, access.Page{Limit: 10})
	b.must(err)
	b.device = known[0].ID.String()
	_, err = b.db.Pool.Exec(t.Context(), "update devices set empty_since = $1", b.access.Now().Add(-time.Minute))
	b.must(err)
	h.read() // nothing is on it, and that is believed
	return h
}

func (b byHand) id() uuid.UUID { return uuid.MustParse(b.device) }

func (b byHand) look() access.DeviceWork {
	b.Helper()
	w, err := b.access.LookAtDevice(b.Context(), holder{}, b.id())
	b.must(err)
	return w
}

func (b byHand) work(c access.Code) access.CodeWork {
	b.Helper()
	for _, w := range b.look().Codes {
		if w.ID == c.ID {
			return w
		}
	}
	return access.CodeWork{}
}

// read tells what a read of the device has found.
func (b byHand) read(found ...access.Found) {
	b.Helper()
	b.must(b.access.RecordRead(b.Context(), holder{}, b.id(), b.look().Seq, found))
}

func (b byHand) begin(w access.CodeWork) {
	b.Helper()
	still, err := b.access.RecordPutStarted(b.Context(), holder{}, b.id(), w)
	b.must(err)
	if !still {
		b.Fatal("the write is no longer wanted")
	}
}

func (b byHand) end(w access.CodeWork, o access.PutOutcome) {
	b.Helper()
	b.must(b.access.RecordPut(b.Context(), holder{}, b.id(), w, o))
}

// on puts a new code on the device under the reference.
func (b byHand) on(pin, ref string) access.Code {
	b.Helper()
	c, _ := b.create(pin)
	w := b.work(c)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: ref, Confirmed: true})
	return c
}

func (b byHand) update(ch access.CodeChange) access.Attempt {
	b.Helper()
	ch.EvenIfOffline = true
	a, err := b.access.UpdateCode(b.Context(), b.p, ch)
	b.must(err)
	return a
}

func (b byHand) deleteCode(c access.Code) access.Attempt {
	b.Helper()
	a, err := b.access.DeleteCode(b.Context(), b.p, c.ID.String(), "")
	b.must(err)
	return a
}

func (b byHand) managed() []access.Code {
	b.Helper()
	cs, _, err := b.access.ListCodes(b.Context(), b.p, access.CodeFilter{DeviceID: b.device, Managed: true}, access.Page{Limit: 100})
	b.must(err)
	return cs
}

func found(ref, pin string) access.Found { return access.Found{Ref: ref, PIN: pin, Confirmed: true} }
