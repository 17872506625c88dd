package connectpage_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// stepper is a person without cookies who logs in to August, which asks for a code after the password.
type stepper struct {
	*testing.T
	*apptest.Server
	w      api.ConnectWebview
	client http.Client
}

func newStepper(t *testing.T, s *apptest.Server) *stepper {
	t.Helper()
	return &stepper{
		T:      t,
		Server: s,
		w:      webview(t, s, map[string]any{"accepted_providers": []string{"august", "nuki"}}),
		client: http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// enterPassword returns the URL of the step that follows.
func (p *stepper) enterPassword() (step string) {
	p.Helper()
	form := url.Values{"email": {sandbox.People[0]}, "password": {sandbox.Password}}
	res, page := visit(p.T, &p.client, http.MethodPost, p.w.URL+"/august", form)
	to, err := res.Location()
	if err != nil || res.StatusCode != http.StatusSeeOther {
		p.Fatalf("after the password: %d %s", res.StatusCode, page)
	}
	return to.String()
}

func (p *stepper) enterCode(step, code string) (status int, page string) {
	p.Helper()
	res, page := visit(p.T, &p.client, http.MethodPost, step, url.Values{"code": {code}})
	return res.StatusCode, page
}

func (p *stepper) expect(what string, status, want int, page string, parts ...string) {
	p.Helper()
	if status != want {
		p.Errorf("%s: %d, want %d: %s", what, status, want, page)
	}
	for _, part := range parts {
		if !strings.Contains(page, part) {
			p.Errorf("%s: no %q in %s", what, part, page)
		}
	}
}

func (p *stepper) waiting() int {
	p.Helper()
	return len(p.Rows(p.T)["pending_logins"])
}

// A person enters a password, mistypes the code, and corrects it on another instance. The password stays on the server,
// and goes with the login.
func TestStep_SecondFactor(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	p := newStepper(t, s)
	step := p.enterPassword()
	if got := now(t, s, p.w); got.Status != "pending" {
		t.Errorf("after the password, the webview is %s", got.Status)
	}
	res, page := visit(t, &p.client, http.MethodGet, step, nil)
	p.expect("the step", res.StatusCode, http.StatusOK, page,
		"Enter the code that August sent", sandbox.SecondFactor, `autocomplete="one-time-code"`, "Start over")
	if strings.Contains(page, sandbox.People[0]) || strings.Contains(page, `value="`+sandbox.Password) {
		t.Errorf("the browser receives entered values again: %s", page)
	}
	status, page := p.enterCode(step, "")
	p.expect("no code", status, http.StatusUnprocessableEntity, page, "Enter the verification code.")
	status, page = p.enterCode(step, "111111")
	p.expect("a wrong code", status, http.StatusUnprocessableEntity, page, "The code is wrong.", `aria-invalid="true"`)
	if got := now(t, s, p.w); got.Status != "failed" {
		t.Errorf("after a wrong code, the webview is %s", got.Status)
	}
	other := newStepper(t, s)
	status, page = p.enterCode(strings.Replace(step, p.w.URL, other.w.URL, 1), sandbox.SecondFactor)
	p.expect("on another link", status, http.StatusNotFound, page, "This login has expired")

	another := s.StartAnother(t)
	status, page = p.enterCode(strings.Replace(step, s.URL, another.URL, 1), sandbox.SecondFactor)
	p.expect("the right code", status, http.StatusSeeOther, page)
	if got := now(t, s, p.w); got.Status != "authorized" || got.ConnectedAccountID == nil {
		t.Errorf("after the login: %+v", got)
	}
	if n := p.waiting(); n != 0 {
		t.Errorf("%d logins still wait", n)
	}
}

// A login starts over when the person wants to, when an earlier step has become wrong, and when it expires. Each try
// counts as an attempt.
func TestStep_StartsOver(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	p := newStepper(t, s)
	res, page := visit(t, &p.client, http.MethodPost, p.enterPassword()+"/start_over", nil)
	p.expect("start over", res.StatusCode, http.StatusSeeOther, page)
	if to, _ := res.Location(); p.waiting() != 0 || to.String() != p.w.URL+"/august" {
		t.Errorf("it leads to %s, and %d logins wait", to, p.waiting())
	}

	step := p.enterPassword()
	s.Exec(t, "update pending_logins set expires_at = now()")
	status, page := p.enterCode(step, sandbox.SecondFactor)
	p.expect("too late", status, http.StatusNotFound, page, "within ten minutes", "Start over")
	step = p.enterPassword() // which deletes the expired login
	if n := p.waiting(); n != 1 {
		t.Errorf("%d logins wait", n)
	}
	for n := range 7 { // after three passwords
		status, page = p.enterCode(step, "111111")
		p.expect("a wrong code", status, http.StatusUnprocessableEntity, page, "The code is wrong.")
		if t.Failed() {
			t.Fatalf("attempt %d", n)
		}
	}
	status, page = p.enterCode(step, sandbox.SecondFactor)
	p.expect("the eleventh attempt", status, http.StatusTooManyRequests, page, "Too many attempts")
}
