package abuse

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// waits sends requests that end late or never, and abandons half of them.
func waits(f *attackerProcess) string {
	body := fmt.Sprintf(`{"device_id":%q,"sync":true}`, f.Device)
	f.loop(1000, time.Second, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		path := []string{"/locks/unlock_door", "/locks/lock_door"}[n%2]
		fmt.Fprint(c, f.head(path, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)), body))
		if n%2 == 0 {
			f.rest(f.ctx, time.Second)
			return
		}
		f.rest(f.ctx, 5*time.Second)
	})
	return ""
}

// keys sends the same requests under one Idempotency-Key. The server works on one of them while the others wait.
func keys(f *attackerProcess) string {
	body := fmt.Sprintf(`{"device_id":%q,"sync":true}`, f.Device)
	f.loop(200, 50*time.Millisecond, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		// finished keys are answered immediately, so a new key is needed soon
		key := fmt.Sprintf("Idempotency-Key: %d-%d\r\n", n%4, time.Now().UnixMilli()/500)
		fmt.Fprint(
			c,
			f.head(
				"/locks/unlock_door",
				key,
				fmt.Sprintf("Content-Length: %d\r\nConnection: close\r\n\r\n", len(body)),
				body,
			),
		)
		f.wait(c)
	})
	return ""
}

// logins creates login pages, opens them, and enters wrong passwords.
func logins(f *attackerProcess) string {
	f.loop(16, 20*time.Millisecond, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		in := bufio.NewReader(c)
		var made struct {
			Webview struct{ URL string } `json:"connect_webview"`
		}
		const wish = `{"accepted_providers":["august"]}`
		fmt.Fprint(c, f.head("/connect_webviews/create", fmt.Sprintf("Content-Length: %d\r\n\r\n", len(wish)), wish))
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return
		}
		err = json.NewDecoder(res.Body).Decode(&made)
		if res.Body.Close(); err != nil {
			return
		}
		page, err := url.Parse(made.Webview.URL)
		if err != nil || page.Path == "" {
			return
		}
		for i := range 12 {
			entered := url.Values{
				"email":    {"guest@example.com"},
				"password": {strings.Repeat("x", 10+i%4/2*5000)},
			}.Encode()
			request := "GET " + page.Path + "/august HTTP/1.1\r\nHost: " + f.host() + "\r\n\r\n"
			if i%2 == 1 {
				request = fmt.Sprintf(
					"POST %s/august HTTP/1.1\r\nHost: %s\r\nContent-Type: "+
						"application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
					page.Path,
					f.host(),
					len(entered),
					entered,
				)
			}
			if _, err := io.WriteString(c, request); err != nil {
				return
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				return
			}
			_, err = io.Copy(io.Discard, res.Body)
			if res.Body.Close(); err != nil {
				return
			}
		}
	})
	return ""
}

// workspaces creates sandbox workspaces endlessly, each with an account and locks.
func workspaces(f *attackerProcess) string {
	const wish = `{"name":"One more","is_sandbox":true}`
	request := fmt.Sprintf(
		"POST /workspaces/create HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: "+
			"application/json\r\nContent-Length: %d\r\n\r\n%s",
		f.host(),
		f.Roamer,
		len(wish),
		wish,
	)
	f.founding = time.Now()
	f.loop(8, 20*time.Millisecond, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		for in := bufio.NewReader(c); f.rest(f.ctx, 10*pace); {
			if _, err := io.WriteString(c, request); err != nil {
				return
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				return
			}
			_, err = io.Copy(io.Discard, res.Body)
			if res.Body.Close(); err != nil {
				return
			}
			if res.StatusCode == http.StatusOK {
				f.hits.Add(1)
				f.founded.Add(1)
			}
		}
	})
	return ""
}

// knownPushes sends events of a vendor that knows the account's secret: too large, invalid JSON, of unknown devices,
// and repeated.
func knownPushes(f *attackerProcess) string {
	var paths []string
	for ctx := f.ctx; len(paths) == 0 && f.rest(ctx, 50*time.Millisecond); {
		f.mu.Lock()
		paths = append(paths, f.pushPaths...)
		f.mu.Unlock()
	}
	bodies := []string{
		`{"event_id":"` + strings.Repeat("a", 100_000) + `"}`,
		strings.Repeat("\x00\xff", 10_000),
		`{"event_type":` + strings.Repeat("[", 60_000),
		`{"event_id":"1","event_type":"device.added","device_id":"a"}`,
		`{"event_id":"1","event_type":"lock.action_completed","device_id":"` + strings.Repeat(
			"d",
			60_000,
		) + `","action":"unlock","timestamp":` + strings.Repeat(
			"9",
			1000,
		) + `}`,
		`{"event_id":"2","event_type":"bridge.online"}`,
	}
	f.loop(16, 10*time.Millisecond, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		go f.wait(c)
		for i := 0; f.ctx.Err() == nil; i++ {
			body := bodies[(n+i)%len(bodies)]
			if i%3 > 0 { // most are valid and repeated
				body = fmt.Sprintf(
					`{"event_id":"%d","event_type":"access_code.updated","device_id":"d%d","access_code_id":"c"}`,
					i%5,
					i%1000,
				)
			}
			if _, err := fmt.Fprint(
				c,
				f.head(paths[(n+i)%len(paths)], fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)), body),
			); err != nil ||
				!f.rest(f.ctx, pace) {
				return
			}
		}
	})
	return ""
}
