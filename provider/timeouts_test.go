package provider

import (
	"net/http"
	"testing"
)

func TestTimeoutsCountForADestroyAlsoAfterAnUpdateThatHasFailed(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	config := func(name, more string) string {
		return f.config(
			accessCode(
				"code = \"904716590100\"\n  name = \"" + name + "\"\n  timeouts {\n    delete = \"" + more + "\"\n  }",
			),
		)
	}
	w := newWorkspace(t, map[string]string{"versions.tf": required, "main.tf": config("Cleaner", "1m")})
	w.expect(true, "apply", "-auto-approve")
	w.write("main.tf", config("Nanny", "7m30s"))
	f.then("/access_codes/update", answerError(http.StatusBadRequest, "invalid_input", "not this name"))
	w.expect(false, "apply", "-auto-approve")
	expectSaid(t, "the state", w.plain("state", "show", front), `delete = "7m30s"`, `name = "Cleaner"`)
	expectSaid(t, "the plan", w.plain("plan"), `name = "Cleaner" -> "Nanny"`)
}

// A destroy sees nothing of the configuration.
func TestTimeoutOfADeletionIsSaidToCountOnceItIsApplied(t *testing.T) {
	t.Parallel()
	const soon = "\n  timeouts {\n    delete = \"1s\"\n  }"
	for name, one := range map[string]string{
		"a shared code": codeSet(`code = "905173846251"`+soon, lockA),
		"a code":        accessCode(`code = "905173846251"` + soon),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(one)})
			w.expect(true, "apply", "-auto-approve")
			f.do(func() { f.nextAttempt = func(a *fakeAttempt) { a.looks = 1 << 30 } })
			w.expect(false, "destroy", "-auto-approve", "-no-color")
			expectSaid(
				t,
				"the error",
				plainly(w.seen.String()),
				"when the time was up",
				"The PIN may still open the door",
				"run Terraform again when the lock is online",
				"and apply that first: a destroy uses the timeouts in the state",
			)
		})
	}
}

func TestACreationThatMayHaveHappenedNamesWhatASecondOneWouldMake(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(accessCode(""))})
	f.then("/access_codes/create", answerRaw(http.StatusOK, "text/html", "<html>It works!</html>"))
	w.expect(false, "apply", "-auto-approve", "-no-color")
	expectSaid(
		t,
		"the error",
		plainly(w.seen.String()),
		"Check the server before you run Terraform again, which would create a second access code.",
	)
}
