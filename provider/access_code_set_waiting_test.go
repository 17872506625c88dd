package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// many is more than the requests that a client has under way at the same time.
const many = 12

// endTogether lets attempts to come end only when there are many of them: before, it is as if all locks were offline.
func (f *fake) endTogether() {
	var waiting []*fakeAttempt
	f.do(func() {
		f.nextAttempt = func(a *fakeAttempt) {
			a.looks = 1 << 30
			if waiting = append(waiting, a); len(waiting) < many {
				return
			}
			for _, one := range waiting {
				one.looks = 1
			}
			waiting = nil
		}
	})
}

func TestLocksThatDoNotAnswerKeepNoOtherFromBeingAsked(t *testing.T) {
	t.Run("a set", func(t *testing.T) {
		f := startFakeLocks(t)
		f.endTogether()
		var locks []string
		for i := range many {
			locks = append(locks, fmt.Sprintf("%08d-2222-4222-8222-222222222222", i))
		}
		config := func(pin string) string {
			return f.config(codeSet("code = \""+pin+"\"\n  timeouts {\n    create = \"20s\"\n    update = \"20s\"\n    delete = \"20s\"\n  }", locks...))
		}
		run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{
			{Config: config("905173846251"), ConfigStateChecks: allSet(locks...)},
			{Config: config("715938426052"), ConfigStateChecks: allSet(locks...)},
			{Config: f.config("")},
		}})
		for _, path := range []string{"create", "update", "delete"} {
			if n := f.count("/access_codes/" + path); n != many {
				t.Errorf("%s was asked for %d times", path, n)
			}
		}
	})
	t.Run("other codes of one lock", func(t *testing.T) {
		f := startFakeLocks(t)
		f.endTogether()
		for i := range many {
			f.codes[fmt.Sprintf("%08d-aaaa-4222-8222-222222222222", i)] = &fakeCode{device: lockA, name: "Guest", code: fmt.Sprint(4100 + i), managed: true, status: "set"}
		}
		config := f.config(strings.Replace(exclusive(lockA), "\n}", "\n  timeouts {\n    update = \"20s\"\n  }\n}", 1))
		run(t, resource.TestCase{CheckDestroy: f.noneLeft, Steps: []resource.TestStep{{Config: config, ExpectNonEmptyPlan: true}, {Config: config}}})
		if n := f.count("/access_codes/delete"); n != many {
			t.Errorf("%d deletions were asked for", n)
		}
	})
}

func TestTheServerIsNotSaidToKeepTryingWhatItWasNotAskedFor(t *testing.T) {
	const soon = "\n  timeouts {\n    delete = \"1s\"\n  }"
	for name, one := range map[string]string{
		"a set":  codeSet(`code = "905173846251"`+soon, lockA),
		"a code": accessCode(`code = "905173846251"` + soon),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(one)})
			w.expect(true, "apply", "-auto-approve")
			_, release := f.hold("/access_codes/get") // which comes before the deletion
			defer release()
			w.expect(false, "destroy", "-refresh=false", "-auto-approve", "-no-color")
			said := plainly(w.seen.String())
			expectSaid(t, "the error", said, "not tried: ", "It was not tried before the time was up.")
			if strings.Contains(said, "keeps trying") {
				t.Error("the server is said to keep trying")
			}
			if n := f.count("/access_codes/delete"); n != 0 {
				t.Errorf("%d deletions were asked for", n)
			}
		})
	}
}

func TestUpdateOfASetKeepsTheCodesThatItHasMadeWhateverElseFails(t *testing.T) {
	for name, breakIt := range map[string]func(f *fake){
		"the time is used up": func(f *fake) {
			f.do(func() {
				f.nextAttempt = func(a *fakeAttempt) {
					if a.actionType == "UPDATE_ACCESS_CODE" {
						a.looks = 1 << 30
					}
				}
			})
		},
		"the workspace cannot be read": func(f *fake) {
			f.then("/workspaces/get", answerError(http.StatusInternalServerError, "internal", "Ouch"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			config := func(pin, within string, locks ...string) string {
				return f.config(codeSet("code = \""+pin+"\"\n  timeouts {\n    update = \""+within+"\"\n  }", locks...))
			}
			w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": config("905173846251", "2s", lockA, lockC)})
			w.expect(true, "apply", "-auto-approve")
			w.rewrite(config("715938426052", "2s", lockA, lockB))
			w.expect(true, "plan", "-out=plan")
			f.do(func() { id, _ := f.on(lockC); delete(f.codes, id) })
			breakIt(f)
			w.expect(false, "apply", "plan")
			f.do(func() {
				f.nextAttempt = nil
				for _, code := range f.codes {
					f.settle(code)
				}
			})
			w.rewrite(config("715938426052", "5m", lockA, lockB))
			w.expect(true, "apply", "-auto-approve")
			w.expect(true, "plan", "-detailed-exitcode")
			if n := f.count("/access_codes/create"); n != 3 {
				t.Errorf("%d codes were created", n)
			}
		})
	}
}

func TestInterruptedCreationOfASetThatHasNoCodeYetSaysSo(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	w := newWorkspace(t, map[string]string{"versions.tf": required, "main.tf": f.config(codeSet(`code = "905173846251"`, lockA))})
	busy := answerError(http.StatusServiceUnavailable, "unavailable", "Come back later")
	f.then("/access_codes/create", slices.Repeat([]http.HandlerFunc{busy}, 10)...)
	came, release := f.hold("/access_codes/create")
	apply := w.start("apply", "-auto-approve", "-no-color")
	<-came
	apply.interrupt()
	release()
	if err := apply.cmd.Wait(); err == nil {
		t.Error("an interrupted apply says it was a success")
	}
	said := plainly(apply.text())
	expectSaid(t, "the interruption", said, "Error: Set the access code on a lock", "Come back later")
	if strings.Contains(said, "Missing Resource State") {
		t.Error("it is said to be a fault of the provider")
	}
	if state := w.read("state", "list"); state != "" {
		t.Errorf("the state has %s", state)
	}
}
