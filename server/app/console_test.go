package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// Browsers find the console at the start page. Clients of the API get an error there, and the console can be elsewhere or
// off.
func TestConsole_IsWhereConfigured(t *testing.T) {
	t.Parallel()
	const signIn = http.StatusSeeOther
	for name, c := range map[string]struct {
		options                 app.ConsoleOptions
		start, console, itsPage int // statuses
	}{
		"on the address of the API": {app.ConsoleOptions{}, http.StatusFound, signIn, signIn},
		"on its own address":        {app.ConsoleOptions{Listen: "127.0.0.1:0"}, http.StatusNotFound, http.StatusNotFound, signIn},
		"off":                       {app.ConsoleOptions{Disabled: true}, http.StatusNotFound, http.StatusNotFound, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.Start(t, apptest.WithConsole(c.options))
			for url, want := range map[string]int{
				s.URL + "/":                   c.start,
				s.URL + "/console":            c.console,
				s.App.ConsoleURL + "/console": c.itsPage,
			} {
				if status := browse(t, url); status != want {
					t.Errorf("%s: status %d, want %d", strings.TrimPrefix(url, s.URL), status, want)
				}
			}
		})
	}
}

// browse requests a URL as a browser, and follows no redirect.
func browse(t *testing.T, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
