package secretscan_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// When the server panics, its log has the stack, and nothing of the request or the code.
func TestPanicsRevealNothing(t *testing.T) {
	t.Parallel()
	r := newTrial(t)
	stacks := func() int { return strings.Count(string(r.run.Log()), "runtime/debug.Stack") }
	page := r.page()
	r.run.PanicIn("rest.(*handlers).CreateAccessCode")
	r.answered(
		http.StatusInternalServerError,
		"a code that makes the server panic",
		apptest.Bearer(r.APIKey),
		"/access_codes/create?code="+r.pin(),
		r.create(`,"name":"Guest"`),
	)
	if n := stacks(); n != 1 {
		t.Errorf("the log has %d stacks of a panic in a request", n)
	}
	r.run.PanicIn("account.(*Service).OpenWebview")
	res, err := http.PostForm(
		page+"/august",
		url.Values{"email": {"jane@example.com"}, "password": {"entered-by-a-user"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if n := stacks(); res.StatusCode != http.StatusInternalServerError || n != 2 {
		t.Errorf("a panic on a page: status %d, and %d stacks in the log", res.StatusCode, n-1)
	}
	r.run.PanicIn("worker.drain", "device.(*Service).Advance")
	r.answered(http.StatusOK, "a code", apptest.Bearer(r.APIKey), "/access_codes/create", r.create(""))
	apptest.Until(t, "a panic in the background is logged", func() bool { return stacks() > 2 })
	r.run.StopPanics()
	lock, last := r.Lock(t, r.device), fmt.Sprintf("0391%02d", r.pins)
	apptest.Until(t, "the work is retried", func() bool { return lock.Has(t, last) })
	r.learned("code", r.pins)
	r.learned("password", 1)
	r.run.Check(t, r.App, nil)
}
