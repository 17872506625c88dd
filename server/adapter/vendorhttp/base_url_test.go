package vendorhttp_test

import (
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for entered, want := range map[string]string{ // empty: refused
		"HTTPS://Api.Example.com.:443/v1/": "https://api.example.com/v1",
		"http://127.0.0.1:8080":            "http://127.0.0.1:8080",
		"http://[::1]:80":                  "http://[::1]",
		"http://api.example.com":           "",
		"https://jane:s3cret@example.com":  "",
		"https://example.com?a=b":          "",
		"example.com":                      "",
	} {
		got, err := vendorhttp.BaseURL(entered)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Error("the error shows the password")
		}
	}
}
