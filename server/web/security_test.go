package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/web"
)

func TestFormOrigin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		header map[string]string
		want   web.Origin
	}{
		{name: "nothing", want: web.UnknownOrigin},
		{name: "null", header: map[string]string{"Origin": "null"}, want: web.UnknownOrigin},
		{name: "own", header: map[string]string{"Origin": "http://LOCKS.example.com"}, want: web.OwnOrigin},
		{name: "another port", header: map[string]string{"Origin": "http://locks.example.com:81"}, want: web.ForeignOrigin},
		{name: "another site", header: map[string]string{"Origin": "https://evil.example"}, want: web.ForeignOrigin},
		{name: "no URL", header: map[string]string{"Origin": "%"}, want: web.ForeignOrigin},
		{
			name:   "own page without a referrer",
			header: map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "null"},
			want:   web.OwnOrigin,
		},
		{name: "sent again", header: map[string]string{"Sec-Fetch-Site": "none"}, want: web.OwnOrigin},
		{
			name:   "a sibling",
			header: map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://locks.example.com"},
			want:   web.ForeignOrigin,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://locks.example.com/console", nil)
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			if got := (web.Address{}).FormOrigin(r); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
