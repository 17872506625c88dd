package reconcile_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// A vendor with idempotent creates answers a repeated create with the first code. If it hides PINs,
// the answer does not show which PIN the code has.
func TestRepeatedCreate_OtherPINHidden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more  string // additional capabilities
		doubt func(b byHand, c access.Code) access.PutOutcome
		shown bool
	}{
		"confirmed": {`{}`, func(b byHand, c access.Code) access.PutOutcome {
			return access.PutOutcome{Ref: "r1", Confirmed: true}
		}, false},
		"accepted": {`{}`, func(b byHand, c access.Code) access.PutOutcome { return access.PutOutcome{Ref: "r1"} }, true},
		"confirmed and listed late, no in-place changes": {`{"put_anew": true}`, func(b byHand, c access.Code) access.PutOutcome {
			return access.PutOutcome{Ref: "r1", Confirmed: true}
		}, false},
		"accepted, no in-place changes": {`{"put_anew": true}`, func(b byHand, c access.Code) access.PutOutcome { return access.PutOutcome{Ref: "r1"} }, true},
		"second answer lost, too": {`{}`, func(b byHand, c access.Code) access.PutOutcome {
			b.begin(b.work(c))
			b.read(found("k9", ""))
			return access.PutOutcome{Ref: "r1", Confirmed: true}
		}, false},
		"without a code list": {`{"list_codes": false}`, func(b byHand, c access.Code) access.PutOutcome { return access.PutOutcome{Ref: "r1", Confirmed: true} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock := timeBound(t, "august")
			_, err := b.db.Pool.Exec(t.Context(),
				`update devices set capabilities = capabilities || '{"pin_visible": false}' || $1::jsonb`, c.more)
			b.must(err)
			code, _ := b.create("2580")
			b.begin(b.work(code)) // the answer is lost
			b.read(found("k9", ""))
			b.update(access.CodeChange{ID: code.ID.String(), PIN: "1357"})
			o := c.doubt(b, code)
			w := b.work(code)
			if w.Action != access.Put || !w.New {
				t.Fatalf("planned action %q", w.Action)
			}
			b.begin(w)
			b.end(w, o)
			masked := access.Found{Ref: "r1", Key: code.ID.String(), Confirmed: true}
			if c.more != `{"list_codes": false}` {
				for _, list := range [][]access.Found{{found("k9", "")}, {found("k9", ""), masked}}[:1+map[bool]int{true: 1}[c.shown]] {
					clock.pass(time.Second)
					b.read(list...)
				}
			}
			if got := b.code(code.ID); got.Status != access.StatusSetting {
				t.Errorf("status %s", got.Status)
			}
			w = b.work(code)
			if want := map[bool]access.Action{true: access.Delete, false: access.Put}[c.more == `{"put_anew": true}`]; w.Action != want ||
				w.Ref != "r1" {
				t.Fatalf("planned action %q of %q, want %q", w.Action, w.Ref, want)
			}
			if w.Action == access.Delete {
				b.taken(w)
				clock.pass(30 * time.Second) // a stale list still shows the old code
				b.read(found("k9", ""))
				w = b.work(code)
			}
			b.begin(w)
			b.end(w, access.PutOutcome{Ref: "r2", Confirmed: true})
			if got := b.code(code.ID); w.PIN != "1357" || got.Status != access.StatusSet {
				t.Errorf("after the second put: status %s", got.Status)
			}
		})
	}
}

// If the second answer is lost as well, the listed code may be either of the two.
func TestRepeatedCreate_TwoLostAnswersHiddenPIN(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]access.Action{`{}`: access.Put, `{"put_anew": true}`: access.Delete} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			b := hand(t, options{profile: "august"})
			_, err := b.db.Pool.Exec(t.Context(),
				`update devices set capabilities = capabilities || '{"pin_visible": false}' || $1::jsonb`, more)
			b.must(err)
			code, _ := b.create("2580")
			b.begin(b.work(code))
			b.update(access.CodeChange{ID: code.ID.String(), PIN: "1357"})
			b.begin(b.work(code))
			for _, confirmed := range []bool{false, true, true} {
				b.read(access.Found{Ref: "r1", Key: code.ID.String(), Confirmed: confirmed})
			}
			if got, w := b.code(code.ID), b.work(code); got.Status != access.StatusSetting || w.Action != want ||
				w.Ref != "r1" {
				t.Errorf("status %s, planned action %q of %q", got.Status, w.Action, w.Ref)
			}
		})
	}
}

// Repeating a create with the same PIN yields the same code.
func TestRepeatedCreate_SamePIN(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	_, err := b.db.Pool.Exec(t.Context(), `update devices set capabilities = capabilities || '{"pin_visible": false}'`)
	b.must(err)
	code, _ := b.create("2580")
	b.begin(b.work(code))
	b.read(found("k9", ""))
	b.update(access.CodeChange{ID: code.ID.String(), Name: new("Friend")})
	w := b.work(code)
	b.begin(w)
	b.end(w, access.PutOutcome{Ref: "r1", Confirmed: true})
	if got := b.code(code.ID); got.Status != access.StatusSet {
		t.Errorf("status %s", got.Status)
	}
}

// The same against a simulated vendor with a lagging list.
func TestRepeatedCreate_PINChangedMeanwhile(t *testing.T) {
	t.Parallel()
	var b *bed
	var posts atomic.Int32
	sent, changed := make(chan struct{}), make(chan struct{})
	b = start(t, options{profile: "smartthings", vendor: func(w http.ResponseWriter, r *http.Request) bool {
		const passed = "X-Passed"
		ofCodes := strings.HasPrefix(r.URL.Path, "/locks/") && strings.HasSuffix(r.URL.Path, "/access_codes")
		switch {
		case !ofCodes || r.Header.Get(passed) != "":
		case r.Method == http.MethodGet && posts.Load() == 1: // the list lags
			_, _ = io.WriteString(w, `{"access_codes":[]}`)
			return true
		case r.Method == http.MethodPost && posts.Add(1) == 1:
			req := r.Clone(r.Context())
			req.RequestURI, req.URL.Scheme, req.URL.Host = "", "http", r.Host
			req.Header.Set(passed, "true")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
			} else {
				_ = res.Body.Close()
			}
			close(sent)
			b.gate(changed)
			panic(http.ErrAbortHandler) // the answer is lost
		}
		return false
	}})
	code, _ := b.create("2580")
	b.gate(sent)
	_, err := b.access.UpdateCode(t.Context(), b.p, access.CodeChange{ID: code.ID.String(), PIN: "1357"})
	b.must(err)
	close(changed)
	b.until("it is set", func() bool { return b.code(code.ID).Status == access.StatusSet })
	if !b.opens("1357") || b.opens("2580") {
		t.Error("the code is set with a PIN that does not open")
	}
}
