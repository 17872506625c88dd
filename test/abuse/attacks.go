package abuse

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// attacks are all attacks by name. Each runs until all are stopped. The functions return when the attack has begun,
// with an optional note.
var attacks map[string]func(*attackerProcess) string

func init() { //nolint:gochecknoinits // breaks an initialization cycle
	attacks = map[string]func(*attackerProcess) string{
		"slow-headers":   slowHeaders,
		"slow-bodies":    slowBodies,
		"silent":         silent,
		"idle":           idle,
		"held-headers":   heldHeaders,
		"endless-bodies": endlessBodies,
		"header-flood":   headerFlood,
		"http2":          http2,
		"json":           badJSON,
		"held-bodies":    heldBodies,
		"pipelining":     pipelining,
		"never-read":     neverRead,
		"waits":          waits,
		"keys":           keys,
		"logins":         logins,
		"workspaces":     workspaces,
		"visitors":       visitors,
		"houses":         houses,
		"guesses":        guesses,
		"device-clouds":  vendors,
		"gateways":       vendors,
		"access-clouds":  vendors,
		"endpoints":      vendors,
		"pushes":         pushes,
		"known-pushes":   knownPushes,
	}
}

// head returns the head of a valid request.
func (f *attackerProcess) head(path string, more ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: " + f.host() + "\r\nAuthorization: Bearer " + f.Key +
		"\r\nContent-Type: application/json\r\n" + strings.Join(more, "")
}

// drip sends text, a byte per second, until the connection or the attack ends.
func (f *attackerProcess) drip(c net.Conn, text string) {
	ctx := f.ctx
	for i := range text {
		if _, err := c.Write([]byte{text[i]}); err != nil || !f.rest(ctx, time.Second) {
			return
		}
	}
}

// holdConnections opens n connections and keeps them with hold. Connections that the server closes are opened again
// after a while. It returns when most are open, or when the server is too busy to accept more soon.
func (f *attackerProcess) holdConnections(n int, again time.Duration, hold func(n int, c net.Conn)) {
	const abreast = 32
	ctx := f.ctx
	f.wanted.Add(int64(n))
	next := make(chan int)
	made := make(chan struct{})
	for range abreast {
		f.all.Go(func() {
			for i := range next {
				c, err := f.dial(i)
				f.all.Go(func() {
					if err == nil {
						hold(i, c)
						c.Close() //nolint:errcheck // it may be closed already
					}
					for ctx.Err() == nil && f.rest(ctx, again) {
						if c, err := f.dial(i); err == nil {
							hold(i, c)
							c.Close() //nolint:errcheck // it may be closed already
						}
					}
				})
			}
		})
	}
	f.all.Go(func() {
		defer close(made)
		defer close(next)
		for i := range n {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	})
	const enough = 20 * time.Second
	select {
	case <-made:
	case <-time.After(enough):
	}
}

func (f *attackerProcess) wait(c net.Conn) {
	_, _ = io.Copy(io.Discard, c) // until either side closes it
}

// headerEnds is a time after which the server has long given up an incomplete header; slowWindow is longer.
const (
	headerEnds = 13 * time.Second
	slowWindow = 15 * time.Second
)

func slowHeaders(f *attackerProcess) string {
	f.holdConnections(1000, time.Second, func(_ int, c net.Conn) {
		begin := time.Now()
		io.WriteString(c, "POST /devices/list HTTP/1.1\r\nHost: x\r\nX-A: ") //nolint:errcheck // shows next
		f.all.Go(func() { f.drip(c, strings.Repeat("a", 1000)) })
		f.wait(c)
		if time.Since(begin) > headerEnds {
			f.slow.Add(1)
		}
	})
	return ""
}

// slowBodies sends bodies of half a megabyte slowly, half of them to public paths.
func slowBodies(f *attackerProcess) string {
	f.holdConnections(1000, time.Second, func(n int, c net.Conn) {
		path := []string{"/devices/list", "/health", "/connect_webviews/list", "/vendors/x/y"}[n%4]
		io.WriteString(c, f.head(path, "Content-Length: 500000\r\n\r\n{\"a\":\"")) //nolint:errcheck // shows next
		f.drip(c, strings.Repeat("a", 1000))
	})
	return ""
}

// heldBodies sends bodies without their end.
func heldBodies(f *attackerProcess) string {
	most := []byte(`{"search":"` + strings.Repeat("a", 1000_000))
	f.holdConnections(600, 5*time.Second, func(_ int, c net.Conn) {
		fmt.Fprint(c, f.head("/devices/list", fmt.Sprintf("Content-Length: %d\r\n\r\n", len(most)+100)))
		if _, err := c.Write(most); err == nil {
			f.wait(c)
		}
	})
	return ""
}

// heldHeaders sends headers without their end.
func heldHeaders(f *attackerProcess) string {
	most := "GET /health HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 993)+"\r\n", 60)
	f.holdConnections(2000, 5*time.Second, func(_ int, c net.Conn) {
		if _, err := io.WriteString(c, most); err == nil {
			f.wait(c)
		}
	})
	return ""
}

func silent(f *attackerProcess) string {
	f.holdConnections(2000, 10*time.Second, func(_ int, c net.Conn) { f.wait(c) })
	return ""
}

func idle(f *attackerProcess) string {
	wanted := 10_000
	note := ""
	if f.room < wanted {
		note = fmt.Sprintf(
			"the limit of open files leaves room for %d idle connections in place of %d",
			max(f.room-1000, 0),
			wanted,
		)
		f.wanted.Add(int64(wanted)) // the full number counts as wanted
		wanted = max(f.room-1000, 0)
		f.wanted.Add(int64(-wanted))
	}
	f.holdConnections(wanted, 10*time.Second, func(_ int, c net.Conn) {
		io.WriteString(c, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n") //nolint:errcheck // shows next
		f.wait(c)
	})
	return note
}

func endlessBodies(f *attackerProcess) string {
	block := bytes.Repeat([]byte("a"), 64<<10)
	f.loop(16, 50*time.Millisecond, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		path := []string{"/devices/list", "/health", "/sandbox/cloud/locks", "/connect/x"}[n%4]
		if n%2 == 0 {
			fmt.Fprint(c, f.head(path, "Content-Length: 8000000000\r\n\r\n"))
		} else {
			fmt.Fprint(c, f.head(path, "Transfer-Encoding: chunked\r\n\r\n"))
		}
		for f.ctx.Err() == nil {
			if n%2 == 1 {
				_, err = fmt.Fprintf(c, "%x\r\n%s\r\n", len(block), block)
			} else {
				_, err = c.Write(block)
			}
			if err != nil || !f.rest(f.ctx, 5*time.Millisecond) {
				return
			}
		}
	})
	return ""
}

func headerFlood(f *attackerProcess) string {
	line := "X-A: " + strings.Repeat("a", 1000) + "\r\n"
	f.loop(16, 20*time.Millisecond, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close()                                          //nolint:errcheck // it may be closed already
		io.WriteString(c, "GET /health HTTP/1.1\r\nHost: x\r\n") //nolint:errcheck // shows next
		for range 1000 {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	})
	return ""
}

// http2 tries HTTP/2, which the server does not serve without TLS, so that rapid resets have no effect.
func http2(f *attackerProcess) string {
	f.loop(4, 20*time.Millisecond, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		io.WriteString( //nolint:errcheck // shows next
			c,
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		)
		for id := byte(1); id < 100; id += 2 {
			// headers, and a reset
			if _, err := c.Write([]byte{
				0,
				0,
				1,
				1,
				5,
				0,
				0,
				0,
				id,
				0x82,
				0,
				0,
				4,
				3,
				0,
				0,
				0,
				0,
				id,
				0,
				0,
				0,
				8,
			}); err != nil {
				return
			}
		}
		f.wait(c)
	})
	return ""
}

// badJSON is below the limit of a body, and much more than that once it is read.
func badJSON(f *attackerProcess) string {
	bodies := []string{
		`{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		`{"a":` + strings.Repeat(`{"a":`, 100_000) + `1` + strings.Repeat("}", 100_000) + `}`,
		`{"device_ids":[` + strings.Repeat(`"",`, 340_000) + `""]}`,
		`{"device_ids":[` + strings.Repeat("[],", 340_000) + `[]]}`,
		`{"device_ids":[` + strings.Repeat("{},", 340_000) + `{}]}`,
		`{"limit":` + strings.Repeat("9", 1_000_000) + `}`,
		`{"limit":1e999999999}`,
		manyNames(),
	}
	f.loop(16, 20*time.Millisecond, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		for i, body := range bodies {
			path := []string{"/devices/list", "/health", "/access_codes/create"}[(n+i)%3]
			if _, err := fmt.Fprint(
				c,
				f.head(path, fmt.Sprintf("Content-Length: %d\r\nConnection: close\r\n\r\n", len(body))),
				body,
			); err != nil {
				return
			}
			f.wait(c)
			if c, err = f.dial(n); err != nil {
				return
			}
			defer c.Close() //nolint:errcheck // it may be closed already
		}
	})
	return ""
}

func manyNames() string {
	var b strings.Builder
	b.WriteString(`{"custom_metadata":{`)
	for n := range 80_000 {
		fmt.Fprintf(&b, `"%d":{},`, n)
	}
	return b.String() + `"a":1}}`
}

// pipelining sends requests without reading the responses.
func pipelining(f *attackerProcess) string {
	request := strings.Repeat(f.head("/events/list", "Content-Length: 2\r\n\r\n{}"), 20)
	f.loop(16, time.Second, func(n int) {
		c, err := f.dialWith(n, 4096)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		for f.ctx.Err() == nil {
			if _, err := io.WriteString(c, request); err != nil {
				return
			}
		}
	})
	return ""
}

// neverRead requests long lists and reads none.
func neverRead(f *attackerProcess) string {
	f.loop(500, 2*time.Second, func(n int) {
		c, err := f.dialWith(n, 4096)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		path, body := "/events/list", `{"limit":500,"since":"2000-01-01"}`
		if n%10 == 9 {
			path = "/openapi.json"
		}
		fmt.Fprint(c, f.head(path, fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)), body))
		f.rest(f.ctx, time.Hour)
	})
	return ""
}

func guesses(f *attackerProcess) string {
	f.loop(16, 20*time.Millisecond, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		for i := range 50 {
			fmt.Fprintf(c, "POST /devices/list HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+
				"seam_test_%d_%d\r\nContent-Length: 0\r\n\r\n", n, i)
			if _, err := c.Read(make([]byte, 4096)); err != nil || !f.rest(f.ctx, 50*time.Millisecond) {
				return
			}
		}
	})
	return ""
}

// pushes sends vendor events without a valid secret, and requests to the simulated cloud without a valid token.
func pushes(f *attackerProcess) string {
	body := `{"event_id":"` + strings.Repeat("a", 100_000) + `"}`
	f.loop(16, 10*time.Millisecond, func(n int) {
		c, err := f.dial(n)
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // it may be closed already
		path := []string{
			"/vendors/0190a4a2-5f3e-7c39-8d1c-3b5f1f6f0a12/" + strings.Repeat("0", 32),
			"/vendors/x/y",
			"/sandbox/cloud/login",
			"/sandbox/cloud/locks",
		}[n%4]
		fmt.Fprint(c, f.head(path, fmt.Sprintf("Content-Length: %d\r\nConnection: close\r\n\r\n", len(body)), body))
		f.wait(c)
	})
	return ""
}

// vendors makes the clouds, gateways, and endpoints misbehave.
func vendors(f *attackerProcess) string {
	f.misbehaving.Store(true)
	return ""
}
