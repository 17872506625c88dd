package rest

import (
	"net/url"
	"testing"
)

func TestIsPlainPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"http://locks.example.com":      true,
		"http://locks.example.com:8500": true,
		"http://LOCKS.example.com.":     true,
		"http://192.0.2.1:8500":         true,
		"http://[2001:db8::1]":          true,
		"https://locks.example.com":     false,
		"http://127.0.0.1:8500":         false,
		"http://localhost:8500":         false,
		"http://server:8500":            false,
		"http://server.local":           false,
		"http://10.1.2.3":               false,
		"http://192.168.1.2":            false,
		"http://[::1]:8500":             false,
		"http://[fd00::1]":              false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := isPlainPublic(u); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
