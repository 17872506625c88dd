package provider

import (
	"net/http"
	"testing"
)

func TestTimeoutsCountForADestroyAlsoAfterAnUpdateThatHasFailed(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	config := func(name, more string) string {
		return f.config(accessCode("code = \"904716590100\"\n  name = \"" + name + "\"\n  timeouts {\n    delete = \"" + more + "\"\n  }"))
	}
	w := newWorkspace(t, map[string]string{"versions.tf": required, "main.tf": config("Cleaner", "1m")})
	w.expect(true, "apply", "-auto-approve")
	w.write("main.tf", config("Nanny", "7m30s"))
	f.then("/access_codes/update", answerError(http.StatusBadRequest, "invalid_input", "not this name"))
	w.expect(false, "apply", "-auto-approve")
	expectSaid(t, "the state", w.plain("state", "show", front), `delete = "7m30s"`, `name = "Cleaner"`)
	expectSaid(t, "the plan", w.plain("plan"), `name = "Cleaner" -> "Nanny"`)
}

func TestACreationThatMayHaveHappenedNamesWhatASecondOneWouldMake(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	w := newWorkspace(t, map[string]string{"versions.tf": required, "main.tf": f.config(accessCode(""))})
	f.then("/access_codes/create", answerRaw(http.StatusOK, "text/html", "<html>It works!</html>"))
	w.expect(false, "apply", "-auto-approve", "-no-color")
	expectSaid(t, "the error", plainly(w.seen.String()), "Look there before running Terraform again, which would create a second access code.")
}
