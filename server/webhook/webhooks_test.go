package webhook

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func TestCheckWebhookURL(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"https://example.com/hook?x=1":                     true,
		"http://127.0.0.1:8080":                            true,
		"https://[::1]/x":                                  true,
		"ftp://example.com":                                false,
		"https://":                                         false,
		"https:///path":                                    false,
		"example.com/hook":                                 false,
		"https://user:pw@example.com":                      false,
		"https://user@example.com":                         false,
		"https://exa mple.com":                             false,
		"https://example.com/\n":                           false,
		"https://example.com/\u009b2J":                     false, // clears a terminal
		"https://example.com/\u202e":                       false, // reverses the following text
		"https://bücher.example/käufe":                     true,
		"javascript:alert(1)":                              false,
		"https://example.com/" + strings.Repeat("a", 2028): true,
		"https://example.com/" + strings.Repeat("a", 2029): false,
		"https://example.com:99999999/":                    false,
		"https://example.com:0/":                           false,
		"https://example.com:65535/":                       true,
		"":                                                 false,
		"HTTPS://example.com":                              true,
		"https://example.com/%zz":                          false,
		"https://example.com/?secret=xxxxx":                true,
	} {
		if err := CheckWebhookURL(url); (err == nil) != ok {
			t.Errorf("%.60q: %v", url, err)
		}
	}
}

func TestWebhook_RefusedAddress(t *testing.T) {
	t.Parallel()
	s := &Service{
		opt: ServiceOptions{RefusedAddress: func(a netip.Addr) bool { return a.IsLoopback() || a.IsPrivate() }},
	}
	for url, ok := range map[string]bool{
		"http://127.0.0.1:8080/x": false, "https://[::1]/": false, "http://10.1.2.3": false,
		"http://localhost:1": false,
		"http://LOCALHOST.":  false, "http://a.localhost/": false,
		"https://8.8.8.8/": true, "https://example.com": true, "https://localhost.example.com": true,
	} {
		err := s.checkHost(url)
		if e, _ := domain.AsError(err); (err == nil) != ok || !ok && (e.Field != "url" ||
			!strings.Contains(e.Message, "--allow-webhook-prefix")) {
			t.Errorf("%s: %v", url, err)
		}
	}
	for url, prefix := range map[string]string{
		"http://localhost:9000":     "127.0.0.0/8",
		"http://127.1.2.3":          "127.0.0.0/8",
		"http://10.1.2.3:80/in":     "10.1.2.3/32",
		"http://[::1]/":             "::1/128",
		"http://[::ffff:10.1.2.3]/": "10.1.2.3/32",
	} {
		if err := s.checkHost(url); err == nil || !strings.Contains(err.Error(), "--allow-webhook-prefix "+prefix+" ") {
			t.Errorf("%s: got %v, want the prefix %s", url, err, prefix)
		}
	}
	s.opt.RefusedAddress = func(a netip.Addr) bool { return !a.Is4() }
	if err := s.checkHost("http://localhost"); err != nil {
		t.Errorf("refused although one of its addresses is allowed: %v", err)
	}
}
