package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// counted is an adapter that says whether it is shut.
type counted struct {
	adapter.AccessSystems
	shut *int
}

func (c counted) Close() error { *c.shut++; return nil }

// An account may have ended, or be looked after by another server, without this one being told: its credentials are not kept for ever.
func TestAdaptersThatNobodyAsksForAreShut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shut := 0
		d := New(
			nil,
			nil,
			map[string]Opener{
				"a": func(context.Context, access.Account) (adapter.AccessSystems, error) { return counted{shut: &shut}, nil },
			},
			Options{},
		)
		account := access.Account{ID: uuid.New(), Adapter: "a"}
		for range 3 {
			if _, err := d.get(t.Context(), account); err != nil {
				t.Fatal(err)
			}
			time.Sleep(unused)
			if d.tidy(); shut != 0 {
				t.Fatal("it is shut although somebody asks for it")
			}
		}
		time.Sleep(time.Second)
		if d.tidy(); shut != 1 || len(d.open) != 0 {
			t.Errorf("it is shut %d times", shut)
		}
		if _, err := d.get(t.Context(), account); err != nil || len(d.open) != 1 {
			t.Errorf("it is not opened again: %v", err)
		}
	})
}

// A system that did not answer a week ago is not told to be away for a week by the first answer that is late.
func TestSilenceOfLongAgoIsAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, of := New(nil, nil, nil, Options{DownAfter: 10 * time.Second}), silence{uuid.New(), false}
		for range 2 {
			for seconds := range 12 {
				if wait, want := d.patience(of), time.Duration(10-seconds)*time.Second; wait != want {
					t.Errorf("after %d s of silence it is told in %s, want %s", seconds, wait, want)
				}
				time.Sleep(time.Second)
			}
			time.Sleep(unused)
		}
		d.tidy()
		d.silent.Range(func(any, any) bool { t.Error("a silence of long ago is kept"); return false })
	})
}

// Whatever is left to write, a system is looked at again after a while.
func TestWritesGiveWayToALook(t *testing.T) {
	t.Parallel()
	d := New(nil, nil, nil, Options{})
	for written, want := range map[time.Duration]bool{0: false, leastWriting / 2: false, mostWriting / 2: false, mostWriting: true} {
		if over, err := d.over(t.Context(), acs.Driven{}, written, time.Minute); over != want || err != nil {
			t.Errorf("after %s they give way: %t %v", written, over, err)
		}
	}
}
