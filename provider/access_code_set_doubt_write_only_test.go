package provider

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A PIN that is written only is in no state: what can be looked for is what the configuration has, if that is still what was created.
func TestAccessCodeSetSaysWhichCodeMayBeOfACreationWhosePINIsNotKnown(t *testing.T) {
	t.Parallel()
	const (
		first, second = "905173846251", "715938426052"
		warning       = "An access code may be left on a lock"
	)
	away := answerRaw(http.StatusInternalServerError, "text/plain", "")
	for name, c := range map[string]struct {
		pin    string // as it was created; by default written only
		hides  bool   // PINs
		before func(f *fake, lost string)
		config string // of the apply that follows; none where the set is destroyed
		warns  bool
		says   string // by the warning, beside the lock and, unless it says something, the code
		wrote  []string
	}{
		"destroyed": {warns: true, wrote: []string{"delete " + lockA}},
		"destroyed, where somebody has deleted it": {
			before: func(f *fake, lost string) { delete(f.codes, lost) }, warns: true, says: "there is none of this name and PIN on the lock now", wrote: []string{"delete " + lockA},
		},
		"tried again":                          {config: writtenOnly(first, 1), wrote: []string{"update " + lockC}},
		"with the same PIN of another version": {config: writtenOnly(first, 2), wrote: []string{"update " + lockA, "update " + lockC}},
		"with the same PIN, kept in the state": {config: `code = "` + first + `"`},
		"with another PIN":                     {config: writtenOnly(second, 2), warns: true, wrote: []string{"create " + lockC, "update " + lockA}},
		"with another PIN of the version":      {config: writtenOnly(second, 1), warns: true, wrote: []string{"create " + lockC}},
		"with another PIN, kept in the state":  {config: `code = "` + second + `"`, warns: true, wrote: []string{"create " + lockC, "update " + lockA}},
		"with another PIN, where somebody has deleted it": {
			before: func(f *fake, lost string) { delete(f.codes, lost) }, config: writtenOnly(second, 2), wrote: []string{"create " + lockC, "update " + lockA},
		},
		"with another PIN, where one of another name is there": {
			before: func(f *fake, lost string) { f.codes[lost].name = "Cleaner" }, config: writtenOnly(second, 2), wrote: []string{"create " + lockC, "update " + lockA},
		},
		"written only, where it was kept in the state": {
			pin: `code = "` + first + `"`, config: writtenOnly(second, 1), wrote: []string{"update " + lockA, "update " + lockC},
		},
		"tried again, where no PIN is told": {hides: true, config: writtenOnly(first, 1), warns: true, wrote: []string{"create " + lockC}},
		"kept in the state, tried again where no PIN is told": {
			pin: `code = "` + first + `"`, hides: true, config: `code = "` + first + `"`, warns: true, wrote: []string{"create " + lockC},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			f.noAttempts = true
			if c.hides {
				f.omits = []string{"code"}
			}
			if c.pin == "" {
				c.pin = writtenOnly(first, 1)
			}
			wrote := f.since(t)
			w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(codeSet(c.pin, lockA, lockC))})
			f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
			f.then("/access_codes/list", away)
			w.expect(true, "apply", "-auto-approve")
			wrote("at first", "create "+lockA, "create "+lockC)
			var lost string
			f.do(func() {
				lost, _ = f.on(lockC)
				if c.before != nil {
					c.before(f, lost)
				}
			})
			args := []string{"destroy", "-auto-approve"}
			if c.config != "" {
				w.rewrite(f.config(codeSet(c.config, lockA, lockC)))
				args[0] = "apply"
			}
			said := w.plain(args...)
			wrote("then", c.wrote...)
			if c.says == "" {
				c.says = lost
			}
			switch {
			case c.warns:
				expectSaid(t, "then", said, warning, `The lock "Garage"`, c.says)
			case strings.Contains(said, warning):
				t.Errorf("warned in vain:\n%s", said)
			}
			if c.config != "" {
				w.expect(true, "plan", "-detailed-exitcode")
			}
			if seen := w.seen.String(); strings.Contains(seen, first) || strings.Contains(seen, second) {
				t.Error("a PIN was shown")
			}
		})
	}
}

func TestAccessCodeSetKeepsInMindThatThePINOfACreationWasWrittenOnly(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	f.noAttempts = true
	away := answerRaw(http.StatusInternalServerError, "text/plain", "")
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(codeSet(writtenOnly("905173846251", 1), lockA, lockC))})
	f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
	f.then("/access_codes/list", away)
	expectSaid(t, "the creation", w.plain("apply", "-auto-approve"), "looks on this lock for a code of this name and PIN", "Leave `code_wo` as it is until then")
	var lost string
	f.do(func() { lost, _ = f.on(lockC) })

	w.rewrite(f.config(codeSet(`code = "715938426052"`, lockA, lockC)))
	f.then("/access_codes/list", away)
	w.expect(false, "apply", "-auto-approve", "-refresh=false") // it cannot look, and keeps a PIN in the state from then on
	expectSaid(t, "once it can look", w.plain("apply", "-auto-approve", "-refresh=false"), "An access code may be left on a lock", lost)
	if said := w.plain("destroy", "-auto-approve"); strings.Contains(said, "may be left") {
		t.Errorf("warned twice:\n%s", said)
	}
}

// privateKeys is a private state of which a test says what it holds.
type privateKeys map[string]string

func (p privateKeys) GetKey(_ context.Context, key string) ([]byte, diag.Diagnostics) {
	return []byte(p[key]), nil
}

func (p privateKeys) SetKey(_ context.Context, key string, value []byte) diag.Diagnostics {
	p[key] = string(value)
	return nil
}

func TestDoubtsOfAnAccessCodeSetAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	later := &accessCodeSetModel{CodeWOVersion: types.Int64Value(3)}
	for name, c := range map[string]struct {
		stored string
		want   map[string]bool // whether the PIN was written only, by lock
	}{
		"nothing":                      {stored: ""},
		"none":                         {stored: `{}`},
		"none, by an earlier provider": {stored: `[]`},
		"by an earlier provider, which has kept the locks alone": {stored: `["` + lockA + `"]`, want: map[string]bool{lockA: true}},
		"by this one": {stored: func() string {
			private := privateKeys{}
			rememberDoubts(t.Context(), private, map[string]done{lockA: {doubt: &doubt{WrittenOnly: true}}, lockB: {doubt: &doubt{}}, lockC: {}})
			return private[locksInDoubtKey]
		}(), want: map[string]bool{lockA: true, lockB: false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			got := map[string]bool{}
			for lock, doubt := range later.doubts(t.Context(), privateKeys{locksInDoubtKey: c.stored}, &diags) {
				got[lock] = doubt.WrittenOnly
			}
			if !maps.Equal(got, c.want) || diags.HasError() {
				t.Errorf("%v, not %v: %v", got, c.want, diags)
			}
		})
	}
}
