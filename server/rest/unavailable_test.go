package rest_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// While the database is unavailable, requests and pages are answered 503 with Retry-After, and they succeed afterwards.
func TestUnavailableDatabase_AsksToRetry(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	s := apptest.Start(t, apptest.WithProfiles("august"), func(c *app.Config) { c.DatabaseURL = dsn })
	admin, name := elsewhere(t, dsn)
	run := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := admin.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	page, err := url.Parse(must(t, s, "/connect_webviews/create", "connect_webview", in{})["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	write := func() *http.Response {
		t.Helper()
		const hook = `{"url":"https://hooks.example/x"}`
		return s.Send(t, http.MethodPost, "/webhooks/create", apptest.Bearer(s.APIKey), hook, nil)
	}
	read := func() *http.Response {
		t.Helper()
		return s.Send(t, http.MethodPost, "/devices/list", apptest.Bearer(s.APIKey), "{}", nil)
	}
	open := func() *http.Response { t.Helper(); return s.Send(t, http.MethodGet, page.Path, nil, "", nil) }
	trigger := func(statement string) func() {
		return func() {
			body := "$$ begin " + statement + "; return new; end $$"
			s.Exec(t, "create function fails() returns trigger language plpgsql as "+body)
			s.Exec(t, "create trigger fails before insert on webhooks for each row execute function fails()")
		}
	}
	untrigger := func() { s.Exec(t, "drop function fails cascade") }
	for _, c := range []struct {
		name       string
		ill, cured func()
		ask        []func() *http.Response
	}{
		{"disk full", trigger("raise 'no space' using errcode = 'disk_full'"), untrigger, []func() *http.Response{write}},
		{"killed", trigger("perform pg_terminate_backend(pg_backend_pid())"), untrigger, []func() *http.Response{write}},
		{"gone", func() {
			run("alter database "+name+" allow_connections false",
				"select pg_terminate_backend(pid) from pg_stat_activity where datname = '"+strings.Trim(name, `"`)+"'")
		}, func() { run("alter database " + name + " allow_connections true") }, []func() *http.Response{write, read, open}},
	} {
		c.ill()
		for i, ask := range c.ask {
			res := ask()
			after := res.Header.Get("Retry-After")
			if res.StatusCode != http.StatusServiceUnavailable || after == "" {
				t.Errorf("%s, request %d: %d, Retry-After %q", c.name, i+1, res.StatusCode, after)
			}
		}
		c.cured()
		apptest.Until(t, c.name+" is over", func() bool {
			return write().StatusCode == http.StatusOK && open().StatusCode == http.StatusOK
		})
	}
}
