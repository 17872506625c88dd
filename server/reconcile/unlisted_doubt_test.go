package reconcile_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// creation says whether a request is to make a code.
func creation(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/access_codes")
}

// A vendor that says that its lock is offline has not put the code there: it is not looked for, nor waited for.
func TestCodeThatALockWasOfflineForIsNotThereWhereNobodyCanLook(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(b *bed, c access.Code){
		"its time is far ahead": func(b *bed, c access.Code) {
			_, err := b.access.UpdateCode(b.Context(), b.p, access.CodeChange{ID: c.ID.String(), EvenIfOffline: true,
				StartsAt: time.Now().Add(720 * time.Hour).Format(time.RFC3339), EndsAt: time.Now().Add(721 * time.Hour).Format(time.RFC3339)})
			b.must(err)
		},
		"deleted": func(b *bed, c access.Code) {
			a, err := b.access.DeleteCode(b.Context(), b.p, c.ID.String(), "")
			b.must(err)
			b.succeeded(a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, s := startShut(t, options{profile: "smartthings"})
			var away, refused atomic.Bool
			away.Store(true)
			s.meets(func(r *http.Request) (*http.Response, error) {
				if !creation(r) || !away.Load() {
					return nil, nil
				}
				refused.Store(true)
				return says(r, http.StatusConflict, `{"error_code":"DEVICE_OFFLINE","message":"it is away"}`), nil
			})
			c, _ := b.create("2580")
			b.until("it is refused", refused.Load)
			leave(b, c)
			away.Store(false)
			_, a := b.create("2591")
			b.must(b.access.Hint(t.Context(), b.account, b.lock)) // it is back
			b.succeeded(a)
			if b.onLock("2580") {
				t.Error("the other is there")
			}
		})
	}
}

// loses has a cloud make a code, and its answer be lost.
func (s *shut) loses(made *atomic.Int32, once bool) {
	s.meets(func(r *http.Request) (*http.Response, error) {
		if !creation(r) || once && made.Load() > 0 {
			return nil, nil
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		answer.Body.Close()
		made.Add(1)
		return nil, errors.New("the connection was reset")
	})
}

// A vendor that answers a repeated creation with the code as it was made first has told where that is: where it cannot be changed it is
// taken off, and made as it is to be.
func TestCreationThatIsAnsweredWithAnotherPINIsMadeAnewWhereNobodyCanLook(t *testing.T) {
	t.Parallel()
	b, s := startShut(t, options{profile: "august"})
	s.unchanging.Store(true)
	b.must(b.access.Hint(t.Context(), b.account, ""))
	b.until("codes are put anew", func() bool {
		d, err := b.access.GetDevice(t.Context(), b.p, b.device, "")
		return err == nil && d.Capabilities.PutAnew
	})
	var made atomic.Int32
	s.loses(&made, true)
	c, _ := b.create("2580")
	b.until("it is made, and that is not told", func() bool { return made.Load() > 0 })
	a, err := b.access.UpdateCode(t.Context(), b.p, access.CodeChange{ID: c.ID.String(), PIN: "2591"})
	b.must(err)
	b.succeeded(a)
	b.until("it is there as it is to be", func() bool { return b.onLock("2591") })
	b.until("it is not as it was", func() bool { return !b.onLock("2580") })
}
