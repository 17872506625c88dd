package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// transport is a function that sends requests.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

func clientOver(t *testing.T, config Config, send transport) *Client {
	t.Helper()
	config.Endpoint, config.Credential, config.Transport = "http://server.example", testKey, send
	client, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestConcurrentRequestsAreLimited(t *testing.T) {
	for allowed, want := range map[int]int{0: DefaultMaxConcurrentRequests, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var now, most int
			count := func(change int) {
				mu.Lock()
				defer mu.Unlock()
				now += change
				most = max(most, now)
			}
			client := clientOver(
				t,
				Config{MaxConcurrentRequests: allowed},
				func(req *http.Request) (*http.Response, error) {
					count(1)
					time.Sleep(time.Second)
					resp, err := goodRead(req)
					resp.Body = &slowBody{content: webhookJSON, closed: func() { count(-1) }}
					return resp, err
				},
			)
			var all sync.WaitGroup
			for range 25 {
				all.Go(func() {
					if err := read(t.Context(), client); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if most != want {
				t.Errorf("%d at a time, want %d", most, want)
			}
		})
	}
}

// slowBody says its content after a pause, and once more and again if it never ends.
type slowBody struct {
	content string
	ctx     context.Context
	endless bool
	closed  func()
}

func (b *slowBody) Read(p []byte) (int, error) {
	if !b.endless {
		time.Sleep(time.Second)
		n := copy(p, b.content)
		b.content = b.content[n:]
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	}
}

func (b *slowBody) Close() error {
	if b.closed != nil {
		b.closed()
	}
	return nil
}

func TestWaitForSlot_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		client := clientOver(t, Config{MaxConcurrentRequests: 1}, func(req *http.Request) (*http.Response, error) {
			<-release
			return goodRead(req)
		})
		go func() { _ = read(t.Context(), client) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := read(ctx, client); !errors.Is(err, context.DeadlineExceeded) || !IsNotSent(err) {
			t.Errorf("error: %v", err)
		}
		close(release)
	})
}

func TestSlowResponsesTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		client := clientOver(t, Config{}, func(req *http.Request) (*http.Response, error) {
			if isCreation(req.URL.Path) {
				tries++
			}
			resp, err := goodRead(req)
			resp.Body = &slowBody{ctx: req.Context(), endless: true}
			return resp, err
		})
		start := time.Now()
		err := write(t.Context(), client)
		if err == nil || !strings.Contains(err.Error(), "did not end within 2m") || !IsBadResponse(err) ||
			errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error: %v", err)
		}
		if waited := time.Since(start); tries != 1 || waited != tryTimeout+keySupportTimeout {
			t.Errorf("%d tries in %s", tries, waited)
		}
	})
}

// After it the connection belongs to its caller, and no context ends the reading of it.
func TestProtocolSwitchIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := clientOver(t, Config{}, func(req *http.Request) (*http.Response, error) {
			resp, err := goodRead(req)
			resp.StatusCode, resp.Body = http.StatusSwitchingProtocols, &slowBody{
				ctx:     context.Background(),
				endless: true,
			}
			return resp, err
		})
		if err := write(
			t.Context(),
			client,
		); err == nil || !strings.Contains(err.Error(), "another protocol") ||
			!IsBadResponse(err) {
			t.Errorf("error: %v", err)
		}
	})
}

func TestInterruptedCreationIsCompleted(t *testing.T) {
	for name, c := range map[string]struct {
		call  func(context.Context, *Client) error
		takes time.Duration
		fails bool
	}{
		"a creation":                 {write, 20 * time.Second, false},
		"a creation that takes ages": {write, time.Minute, true},
		"a read":                     {read, 20 * time.Second, true},
		"a change":                   {change, 20 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := clientOver(t, Config{}, func(req *http.Request) (*http.Response, error) {
					select {
					case <-req.Context().Done():
						return nil, req.Context().Err()
					case <-time.After(c.takes):
						return goodRead(req)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := c.call(ctx, client); (err != nil) != c.fails {
					t.Errorf("error: %v", err)
				}
			})
		})
	}
}

func TestTriesAreLoggedWithoutSecrets(t *testing.T) {
	const pin = "905173846251"
	synctest.Test(t, func(t *testing.T) {
		var tries []Try
		answers := []func(*http.Request) (*http.Response, error){
			breaks(
				fmt.Errorf("proxy refuses Bearer %s and %s: %w", testKey, pin, refused),
			),
			says(200, `{"ok": true, "access_code": {"access_code_id": "c1", "code": "`+pin+`"}}`),
		}
		s := &script{t: t, answers: answers}
		client := clientOver(
			t,
			Config{Log: func(_ context.Context, try Try) { tries = append(tries, try) }},
			s.RoundTrip,
		)
		if _, err := Call[AccessCodeCreatedResponse](
			t.Context(),
			client.CreateAccessCode,
			CreateAccessCodeRequest{DeviceID: "d", Code: pin},
		); err != nil {
			t.Fatal(err)
		}
		want := []Try{
			{
				Method: "POST",
				Path:   "/access_codes/create",
				Err:    "proxy refuses Bearer (hidden) and (hidden): dial tcp: connection refused",
			},
			{
				Method:    "POST",
				Path:      "/access_codes/create",
				Status:    200,
				RequestID: "r-1",
			},
		}
		if fmt.Sprint(tries) != fmt.Sprint(want) {
			t.Errorf("got  %v\nwant %v", tries, want)
		}
	})
}
