package provider

import (
	"net/http"
	"strings"
	"testing"
)

// losesOnC creates the code on lock C, and has a gateway answer for it.
func (f *fake) losesOnC() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := f.calls[len(f.calls)-1].body
		if body["device_id"] != lockC {
			f.createCode(w, r, body)
			return
		}
		f.createCode(httptestDiscard{}, r, body)
		for _, code := range f.codes {
			f.settle(code)
		}
		answerRaw(http.StatusBadGateway, "text/html", "<h1>Bad gateway</h1>")(w, r)
	}
}

func TestAccessCodeSetLooksForTheCodeOfACreationThatWasNotAnswered(t *testing.T) {
	t.Parallel()
	away := answerRaw(http.StatusInternalServerError, "text/plain", "")
	set := func(locks ...string) string { return codeSet(`code = "905173846251"`, locks...) }
	for name, c := range map[string]struct {
		hides bool // PINs
		then  func(t *testing.T, f *fake, w *directory, wrote func(when string, want ...string))
	}{
		"and takes it over": {then: func(t *testing.T, f *fake, w *directory, wrote func(string, ...string)) {
			f.then("/access_codes/list", away)
			w.expect(false, "apply", "-auto-approve", "-refresh=false") // it cannot look, so it creates nothing
			wrote("while it cannot look")
			w.expect(true, "apply", "-auto-approve", "-refresh=false")
			wrote("once it can, it finds it as it is to be")
			w.expect(true, "plan", "-detailed-exitcode")
			w.expect(true, "destroy", "-auto-approve")
			wrote("in the end", "delete "+lockA, "delete "+lockC)
		}},
		"also where somebody has deleted it": {then: func(t *testing.T, f *fake, w *directory, wrote func(string, ...string)) {
			f.do(func() { id, _ := f.on(lockC); delete(f.codes, id) })
			w.expect(true, "apply", "-auto-approve")
			wrote("again", "create "+lockC)
			w.expect(true, "plan", "-detailed-exitcode")
		}},
		"and takes it off a lock that is taken out": {then: func(t *testing.T, f *fake, w *directory, wrote func(string, ...string)) {
			w.rewrite(f.config(set(lockA)))
			w.expect(true, "apply", "-auto-approve")
			wrote("taken out", "delete "+lockC)
		}},
		"and takes it off when the set is destroyed": {then: func(t *testing.T, f *fake, w *directory, wrote func(string, ...string)) {
			w.expect(true, "destroy", "-auto-approve")
			wrote("in the end", "delete "+lockA, "delete "+lockC)
		}},
		"and warns where it cannot tell": {hides: true, then: func(t *testing.T, f *fake, w *directory, wrote func(string, ...string)) {
			expectSaid(t, "the destroy", w.plain("destroy", "-auto-approve"), "An access code may be left on a lock", `"Garage"`)
			wrote("in the end", "delete "+lockA)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			f.noAttempts = true
			if c.hides {
				f.omits = []string{"code"}
			}
			wrote := f.since(t)
			w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(set(lockA, lockC))})
			f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
			f.then("/access_codes/list", away)
			expectSaid(t, "the creation", w.plain("apply", "-auto-approve"), `The lock "Garage" (`+lockC+"): the server answered 502 Bad Gateway",
				"It is not known whether the server has done it", "looks on this lock for a code of this name and PIN")
			wrote("at first", "create "+lockA, "create "+lockC)
			c.then(t, f, w, wrote)
			if strings.Contains(w.seen.String(), "905173846251") {
				t.Error("the PIN was shown")
			}
		})
	}
}

// What the code of a lost creation is looked for by is the name and the PIN of the state.
func TestAccessCodeSetChangesNothingWhileItCannotLookForALostCode(t *testing.T) {
	t.Parallel()
	const former, wanted = "905173846251", "715938426052"
	away := answerRaw(http.StatusInternalServerError, "text/plain", "")
	for name, changed := range map[string]string{
		"another PIN":           codeSet(`code = "`+wanted+`"`, lockA, lockC),
		"another name":          strings.Replace(codeSet(`code = "`+former+`"`, lockA, lockC), "Nanny", "Nurse", 1),
		"and without that lock": codeSet(`code = "`+wanted+`"`, lockA),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			f.noAttempts = true
			wrote := f.since(t)
			w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(codeSet(`code = "`+former+`"`, lockA, lockC))})
			f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
			f.then("/access_codes/list", away)
			w.expect(true, "apply", "-auto-approve")
			wrote("at first", "create "+lockA, "create "+lockC)

			w.rewrite(f.config(changed))
			f.then("/access_codes/list", away)
			w.expect(false, "apply", "-auto-approve", "-refresh=false", "-no-color")
			expectSaid(t, "while it cannot look", plainly(w.seen.String()), `The lock "Garage" (`+lockC+"): the server answered 500", "Nothing of the set was changed")
			wrote("while it cannot look")
			w.expect(true, "apply", "-auto-approve", "-refresh=false")
			if strings.Contains(changed, lockC) {
				wrote("once it can", "update "+lockA, "update "+lockC)
			} else {
				wrote("once it can", "delete "+lockC, "update "+lockA)
			}
			w.expect(true, "plan", "-detailed-exitcode")
			w.expect(true, "destroy", "-auto-approve")
			f.do(func() {
				if len(f.codes) != 0 {
					t.Errorf("%d codes are left", len(f.codes))
				}
			})
			if seen := w.seen.String(); strings.Contains(seen, former) || strings.Contains(seen, wanted) {
				t.Error("a PIN was shown")
			}
		})
	}
}

// Where the server does not know a lock any more, nobody can look there: the other locks get the new PIN all the same.
func TestLockInDoubtThatHasLeftKeepsNoOtherFromItsNewPIN(t *testing.T) {
	t.Parallel()
	const former, wanted = "905173846251", "715938426052"
	left := answerError(http.StatusNotFound, "device_not_found", "Device not found")
	f := startFakeLocks(t)
	f.noAttempts = true
	wrote := f.since(t)
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(codeSet(`code = "`+former+`"`, lockA, lockC))})
	f.then("/access_codes/create", f.losesOnC(), f.losesOnC())
	f.then("/access_codes/list", answerRaw(http.StatusInternalServerError, "text/plain", ""))
	w.expect(true, "apply", "-auto-approve")
	wrote("at first", "create "+lockA, "create "+lockC)

	f.do(func() {
		for id, code := range f.codes {
			if code.device == lockC {
				delete(f.codes, id)
			}
		}
	})
	f.then("/access_codes/list", left)
	f.then("/access_codes/create", left)
	w.rewrite(f.config(codeSet(`code = "`+wanted+`"`, lockA, lockC)))
	w.expect(false, "apply", "-auto-approve", "-refresh=false", "-no-color")
	expectSaid(t, "while the lock is wanted", plainly(w.seen.String()), `The lock "Garage" (`+lockC+"): ", "The other locks of the set are not affected")
	wrote("while the lock is wanted", "create "+lockC, "update "+lockA)
	w.rewrite(f.config(codeSet(`code = "`+wanted+`"`, lockA)))
	f.then("/access_codes/list", left)
	w.expect(true, "apply", "-auto-approve", "-refresh=false", "-no-color")
	expectSaid(t, "once it is taken out", plainly(w.seen.String()), "An access code may be left on a lock")
	w.expect(true, "plan", "-detailed-exitcode")
}

func TestAccessCodeSetOfWhichNothingIsKnownSaysWhereToLook(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(codeSet("", lockC))})
	f.then("/access_codes/create", f.losesOnC())
	f.then("/access_codes/list", nil, answerRaw(http.StatusInternalServerError, "text/plain", ""))
	w.expect(false, "apply", "-auto-approve", "-no-color")
	expectSaid(t, "the creation", plainly(w.seen.String()), "Error: Set the access code on a lock", `"Garage"`, "It is not known whether the server has done it",
		"Nothing of the set is in the state: look on this lock before running Terraform again")
}
