package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// of each kind in a round, alternating with a completely wrong key.
const guessesPerRound = 300

// measureGuesses measures the time to reject a wrong API key, one at a time over HTTP, against a key of which only the
// prefix is right. The time must not reveal how much of a guess is right.
func measureGuesses(ctx context.Context, o options) ([]figure, error) {
	b, err := newBed(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer b.close()
	other := func(i int) string {
		key := []byte(b.key)
		if key[i]++; key[i] > 'z' || key[i] == ':' || key[i] == '[' {
			key[i] = '2'
		}
		return string(key)
	}
	secret := strings.LastIndexByte(b.key, '_') + 1
	nothing := b.key[:secret] + strings.Repeat("2", len(b.key)-secret)
	fmt.Fprintf(os.Stderr, "guesses: %d rounds, %d of each in turns, one at a time\n", o.rounds, guessesPerRound)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	var figures []figure
	for _, wrong := range []struct{ what, key string }{
		{"all but its first byte", other(secret)},
		{"half", b.key[:secret+(len(b.key)-secret)/2] + nothing[secret+(len(b.key)-secret)/2:]},
		{"all but its last byte", other(len(b.key) - 1)},
	} {
		var took latencies
		for i := range o.rounds + 1 {
			var floor, ours []time.Duration
			for turn := range 2 * guessesPerRound {
				key, took := nothing, &floor
				// so that neither is always the first of the two
				if turn%4 == 1 || turn%4 == 2 {
					key, took = wrong.key, &ours
				}
				d, err := b.refused(ctx, client, key)
				if err != nil {
					return nil, err
				}
				*took = append(*took, d)
			}
			if i > 0 { // the first round warms up
				took.floor, took.ours = append(took.floor, floor), append(took.ours, ours)
			}
		}
		f := took.figure("a key of which " + wrong.what + " is right, to one of which nothing is, p50")
		f.aim = aim{atLeast: 0.95, atMost: 1.05}
		figures = append(figures, f)
		printFigure(f)
	}
	return figures, nil
}

// refused returns the time until a request with this key is rejected.
func (b *bed) refused(ctx context.Context, client *http.Client, key string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.app.URL+"/workspaces/get", strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	begin := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusUnauthorized {
		return 0, fmt.Errorf("a wrong key has status %s", res.Status)
	}
	return time.Since(begin), nil
}
