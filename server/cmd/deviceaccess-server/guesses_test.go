package main

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
)

// Whoever starts the server without a word about it has guesses limited.
func TestGuessesAreLimitedUnlessSomebodySaysOtherwise(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	r, _ := p.serve()
	const atOnce, tries = 60, 400 // of which half a one is added in a second
	if status := p.post(r, r.APIKey, "/workspaces/get", "{}", nil); status != http.StatusOK {
		t.Fatalf("a good key is answered %d", status)
	}
	refused := 0
	for n := range tries {
		res, _ := p.send(r.URL+"/devices/list", fmt.Sprint("seam_guess", n), "{}")
		switch wait, _ := strconv.Atoi(res.Header.Get("Retry-After")); {
		case res.StatusCode == http.StatusTooManyRequests && wait > 0:
			refused++
		case res.StatusCode != http.StatusUnauthorized:
			t.Fatalf("guess %d is answered %s, Retry-After %q", n, res.Status, res.Header.Get("Retry-After"))
		}
		if refused > 0 && n < atOnce {
			t.Fatalf("guess %d is refused already", n)
		}
	}
	if refused == 0 {
		t.Errorf("%d guesses are answered 401", tries)
	}
	if status := p.post(r, r.APIKey, "/workspaces/get", "{}", nil); status != http.StatusOK {
		t.Errorf("a key that was good from there before is answered %d", status)
	}
}
