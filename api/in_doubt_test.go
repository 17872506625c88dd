package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What becomes of later tries tells nothing about a first one that was not answered.
func TestMayHaveHappened(t *testing.T) {
	t.Parallel()
	type answer = func(*http.Request) (*http.Response, error)
	lost := breaks(&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded})
	busy := says(
		409,
		`{"ok":false,"error":{"type":"idempotency_key_in_use","message":"Wait"}}`,
		acceptsKeysHeader,
		"true",
		"Retry-After",
		"1",
	)
	again := func(n int, a answer) []answer { return slices.Repeat([]answer{a}, n) }
	for name, c := range map[string]struct {
		first answer
		then  []answer
		doubt bool
	}{
		"server has gone":              {lost, again(5, breaks(refused)), true},
		"of a gateway, too":            {says(502, ``), again(5, breaks(refused)), true},
		"503":                          {lost, again(5, says(503, ``)), true},
		"429":                          {lost, again(5, says(429, `{}`)), true},
		"its key is in use":            {lost, again(19, busy), true},
		"the key is refused now":       {lost, again(1, says(401, `{}`, acceptsKeysHeader, "true")), true},
		"400 of what is before it":     {lost, again(1, says(400, `<h1>`)), true},
		"400 of a server by keys":      {lost, again(1, says(400, `{}`, acceptsKeysHeader, "true")), false},
		"server never reachable":       {breaks(refused), again(5, breaks(refused)), false},
		"429 at first":                 {says(429, `{}`), again(5, breaks(refused)), false},
		"in doubt in the end only":     {breaks(refused), again(5, lost), true},
		"400 after no connection":      {breaks(refused), again(1, says(400, `{}`)), false},
		"500, which is not sent again": {says(500, `{}`), nil, true},
		"a success in the end":         {lost, again(1, goodRead), false},
		"a page that is no answer":     {lost, again(1, says(200, `<h1>`)), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, _ := scripted(
					t,
					append([]answer{says(200, webhookJSON, acceptsKeysHeader, "true"), c.first}, c.then...)...)
				if err := read(t.Context(), client); err != nil {
					t.Fatal(err)
				}
				if err := write(t.Context(), client); (err != nil && MayHaveHappened(err)) != c.doubt {
					t.Errorf("may have happened: %v, of %v", !c.doubt, err)
				}
			})
		})
	}
}

// The second try waits for its turn when Terraform is interrupted.
func TestIsNotSent_InDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		held, tried, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
		client := clientOver(t, Config{MaxConcurrentRequests: 1}, func(req *http.Request) (*http.Response, error) {
			if isCreation(req.URL.Path) {
				close(tried)
				return says(502, ``, acceptsKeysHeader, "true")(req)
			}
			close(held)
			<-release
			return goodRead(req)
		})
		go func() {
			<-tried
			go func() { _ = read(t.Context(), client) }() // takes the turn while the creation pauses
			<-held
			time.Sleep(2 * initialBackoff)
			cancel()
		}()
		err := write(ctx, client)
		if !errors.Is(err, context.Canceled) || IsNotSent(err) || !MayHaveHappened(err) {
			t.Errorf("not sent %v, may have happened %v: %v", IsNotSent(err), MayHaveHappened(err), err)
		}
		close(release)
	})
}
