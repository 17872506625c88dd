package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// counted is an adapter that counts its Close calls.
type counted struct {
	adapter.AccessSystems
	shut *int
}

func (c counted) Close() error { *c.shut++; return nil }

// An idle adapter is closed, because its account may have been deleted or moved to another server
// without a notice.
func TestIdleAdapter_IsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shut := 0
		d := New(
			nil,
			nil,
			map[string]Opener{
				"a": func(context.Context, account.Account) (adapter.AccessSystems, error) {
					return counted{shut: &shut}, nil
				},
			},
			Options{},
		)
		account := account.Account{ID: uuid.New(), Adapter: "a"}
		for range 3 {
			if _, err := d.get(t.Context(), account); err != nil {
				t.Fatal(err)
			}
			time.Sleep(idleTimeout)
			if d.closeIdle(); shut != 0 {
				t.Fatal("the adapter was closed in use")
			}
		}
		time.Sleep(time.Second)
		if d.closeIdle(); shut != 1 || len(d.open) != 0 {
			t.Errorf("%d closes", shut)
		}
		if _, err := d.get(t.Context(), account); err != nil || len(d.open) != 1 {
			t.Errorf("the adapter was not opened again: %v", err)
		}
	})
}

// An outage of a week ago does not count toward the next one.
func TestSilence_OldOneDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, of := New(nil, nil, nil, Options{DownAfter: 10 * time.Second}), unreachable{uuid.New(), false}
		for range 2 {
			for seconds := range 12 {
				if wait, want := d.graceLeft(of), time.Duration(10-seconds)*time.Second; wait != want {
					t.Errorf("after %d s of silence: grace left %s, want %s", seconds, wait, want)
				}
				time.Sleep(time.Second)
			}
			time.Sleep(idleTimeout)
		}
		d.closeIdle()
		d.silent.Range(func(any, any) bool { t.Error("an old silence is kept"); return false })
	})
}

// After a while, a look interrupts the remaining writes.
func TestWrites_AreInterruptedByLook(t *testing.T) {
	t.Parallel()
	d := New(nil, nil, nil, Options{})
	for written, want := range map[time.Duration]bool{0: false, minWriting / 2: false, maxWriting / 2: false, maxWriting: true} {
		if over, err := d.mustRead(
			t.Context(),
			acs.ReconcileState{},
			written,
			time.Minute,
		); over != want ||
			err != nil {
			t.Errorf("after %s: interrupted %t %v", written, over, err)
		}
	}
}
