package connectpage_test

import (
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/oauth/oauthtest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// pageIn requests a page with the languages of a browser.
func pageIn(t *testing.T, at, accept string) (header http.Header, page string) {
	t.Helper()
	res, page := visitIn(t, &http.Client{}, at, accept)
	return res.Header, page
}

func visitIn(t *testing.T, client *http.Client, at, accept string) (*http.Response, string) {
	t.Helper()
	accepting := *client
	accepting.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("Accept-Language", accept)
		return http.DefaultTransport.RoundTrip(r)
	})
	return visit(t, &accepting, http.MethodGet, at, nil)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The browser's languages and the parameter lang choose the language.
func TestLanguage_Chosen(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	w := webview(t, s, nil)
	for name, c := range map[string]struct{ query, accept, code, heading string }{
		"no language":            {"", "", "en", "Connect your locks"},
		"German":                 {"", "de", "de", "Schlösser verbinden"},
		"Swiss German":           {"", "de-CH, en;q=0.5", "de", "Schlösser verbinden"},
		"French of Canada":       {"", "fr-CA", "fr", "Connectez vos serrures"},
		"Spanish":                {"", "es-MX,es;q=0.9", "es", "Conecte sus cerraduras"},
		"Italian":                {"", "it-IT", "it", "Colleghi le Sue serrature"},
		"Portuguese":             {"", "pt-PT", "pt", "Conecte suas fechaduras"},
		"the second choice":      {"", "ja, it;q=0.8, en;q=0.2", "it", "Colleghi le Sue serrature"},
		"an unknown language":    {"", "ja", "en", "Connect your locks"},
		"nonsense":               {"", "%%%;;q=x", "en", "Connect your locks"},
		"a header that is long":  {"", "de" + strings.Repeat(", fr;q=0.1", 200), "en", "Connect your locks"},
		"the parameter":          {"?lang=es", "de", "es", "Conecte sus cerraduras"},
		"an unknown parameter":   {"?lang=<x>", "de", "de", "Schlösser verbinden"},
		"a parameter of English": {"?lang=en", "de", "en", "Connect your locks"},
	} {
		header, page := pageIn(t, w.URL+c.query, c.accept)
		if !strings.Contains(page, `<html lang="`+c.code+`">`) || !strings.Contains(page, c.heading+"</h1>") ||
			header.Get("Content-Language") != c.code || header.Get("Vary") != "Accept-Language" {
			t.Errorf("%s: %v %s", name, header, page)
		}
		if strings.Contains(page, "<x>") {
			t.Errorf("%s: the page quotes the parameter", name)
		}
	}
}

var links = regexp.MustCompile(`(?:href|action|hx-post|hx-get)="([^"]+)"`)

// Links and forms keep the language that the person has chosen.
func TestLanguage_KeptInLinks(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, apptest.WithProfiles("august"))
	p := newStepper(t, s)
	step := p.enterPassword()
	for _, at := range []string{p.w.URL, p.w.URL + "/nuki", step, p.w.URL + "/" + p.w.ConnectWebviewID} {
		_, page := pageIn(t, at+"?lang=de", "fr")
		found := 0
		for _, link := range links.FindAllStringSubmatch(page, -1) {
			if to := link[1]; strings.Contains(to, "/assets/") || strings.HasPrefix(to, "assets/") ||
				strings.HasPrefix(to, "?lang=") || strings.HasSuffix(to, "look.css") {
				continue
			}
			if found++; !strings.HasSuffix(link[1], "?lang=de") {
				t.Errorf("%s: a link to %s", at, link[1])
			}
		}
		if found == 0 {
			t.Errorf("%s has no links: %s", at, page)
		}
		if _, page := pageIn(t, at, "fr"); strings.Contains(strings.Split(page, "<footer>")[0], "lang=fr&") ||
			strings.Contains(strings.Split(page, "<footer>")[0], "?lang=") {
			t.Errorf("%s: a language was chosen: %s", at, page)
		}
	}
	res, page := visit(t, &p.client, http.MethodPost, p.w.URL+"/nuki?lang=it", map[string][]string{
		"email": {sandbox.People[0]}, "password": {"mistyped"},
	})
	p.expect("a refusal", res.StatusCode, http.StatusUnprocessableEntity, page,
		"L’indirizzo e-mail o la password non è corretta.", `id="password-error"`)
	res, page = visit(t, &p.client, http.MethodPost, p.w.URL+"/nuki?lang=it", map[string][]string{
		"email": {sandbox.People[0]}, "password": {sandbox.Password},
	})
	p.expect("the login", res.StatusCode, http.StatusSeeOther, page)
	if to := res.Header.Get("Location"); !strings.HasSuffix(to, "?lang=it") {
		t.Errorf("the login leads to %s", to)
	}
}

// A login on the vendor's pages returns to a page in the language that the person has chosen.
func TestLanguage_KeptOnTheVendorsPages(t *testing.T) {
	t.Parallel()
	cloud, w := startWithRedirect(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	cloud.Fail(oauthtest.AccessDenied)
	res, page := visitIn(t, client, w.URL+"/tedee/authorize?lang=pt", "fr")
	if !strings.Contains(page, "O acesso não foi autorizado em Bolt.") ||
		!strings.HasSuffix(res.Request.URL.String(), "?lang=pt") {
		t.Errorf("at %s: %s", res.Request.URL, page)
	}
	// The vendor's own texts stay, and do not claim to be in the language of the page.
	if !strings.Contains(page, `id="key-help" lang="">In the app, below Settings.</p>`) {
		t.Errorf("the help: %s", page)
	}
	if _, page := visitIn(
		t,
		client,
		w.URL+"/tedee/authorize",
		"fr",
	); !strings.Contains(
		page,
		"Vous n’avez pas autorisé l’accès chez Bolt.",
	) {
		t.Errorf("without a choice: %s", page)
	}
}
