package api

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	firstPause = 250 * time.Millisecond
	longPause  = 10 * time.Second
	patience   = 5 * time.Minute  // no request is repeated for longer
	askingFor  = 30 * time.Second // whether a server goes by keys

	triesUnasked = 6  // of a server that does not say when to come back: about eight seconds
	triesAsked   = 20 // of one that does
)

// retrying repeats requests that may succeed later. Reads, changes and deletions, which come to the same when they
// happen twice, are repeated after every failure of the network and after 429, 502, 503 and 504. So are creations where
// the server has said that it goes by their Idempotency-Key, which it is asked for where it has not answered anything yet. With
// another server they are repeated only where they cannot have happened: after 429, 503 and when no connection was made.
// Retry-After is obeyed; the context bounds it all. Where no request could connect for longer than a restart takes, those that
// cannot either are not repeated.
type retrying struct {
	next   http.RoundTripper
	base   string       // the path of the endpoint
	keyed  *atomic.Bool // whether the server goes by keys
	outage *outage
}

// The headers of requests that have their effect once, and of servers that see to it.
const (
	keyHeader         = "Idempotency-Key"
	acceptsKeysHeader = "Accept-Idempotency-Key"
)

func (t retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, start, key := req.Context(), time.Now(), ""
	if isCreation(req.URL.Path) {
		key = rand.Text()
	}
	doubt := false // whether a try before may have been carried out
	for try := 1; ; try++ {
		again, err := anew(req)
		if err != nil {
			return nil, err
		}
		if key != "" {
			again.Header.Set(keyHeader, key)
		}
		tried := time.Now()
		resp, err := t.next.RoundTrip(again)
		if err == nil && resp.Header.Get(acceptsKeysHeader) == "true" {
			t.keyed.Store(true)
		}
		if err == nil {
			t.outage.isOver()
		}
		if doubt = doubt && !settles(resp); doubt {
			resp, err = doubted(resp, err)
		}
		harmless := isRepeatable(req.URL.Path) || key != "" && t.keyed.Load()
		if ctx.Err() != nil || !worthRepeating(resp, err, harmless) && (key == "" || !worthRepeating(resp, err, true) || !t.goesByKeys(req)) {
			return resp, err
		}
		doubt = doubt || key != "" && mayHaveHappened(resp, err)
		pause, asked := pauseAfter(resp, try)
		limit := triesUnasked
		if asked {
			limit = triesAsked
		}
		if IsNotConnected(err) && t.outage.goesOn(tried) && !doubt {
			return resp, err
		}
		if try >= limit || time.Since(start)+pause > patience || !sleep(ctx, pause) {
			return resp, err
		}
	}
}

// goesByKeys asks the server, by a question about the workspace, whether it goes by the keys of creations. The failure of a
// creation may be the first that is heard of it.
func (t retrying) goesByKeys(req *http.Request) bool {
	ctx, cancel := context.WithTimeout(req.Context(), askingFor)
	defer cancel()
	if resp, err := t.RoundTrip(asksForWorkspace(req.WithContext(ctx), t.base)); err == nil {
		resp.Body.Close()
	}
	return t.keyed.Load()
}

// anew is the request with its body unread.
func anew(req *http.Request) (*http.Request, error) {
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	return again, nil
}

// isRepeatable says whether an operation comes to the same when it happens twice; the contract names operations so.
func isRepeatable(urlPath string) bool {
	switch path.Base(urlPath) {
	case "update", "delete", "convert_to_managed":
		return true
	}
	return isRead(urlPath)
}

// isCreation says whether an operation makes something new each time it is called, unless it has a key.
func isCreation(urlPath string) bool {
	name := path.Base(urlPath)
	return name == "create" || name == "create_multiple"
}

// isRead says whether an operation changes nothing; the contract names such operations so.
func isRead(urlPath string) bool {
	name := path.Base(urlPath)
	return name == "get" || name == "list" || name == "generate_code" || name == "health" ||
		strings.HasPrefix(name, "get_") || strings.HasPrefix(name, "list_")
}

func worthRepeating(resp *http.Response, err error, harmless bool) bool {
	if err == nil {
		switch resp.StatusCode {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			return true
		case http.StatusBadGateway, http.StatusGatewayTimeout:
			return harmless
		case http.StatusConflict: // with a request of the same key, whose answer this one will get
			return harmless && resp.Header.Get("Retry-After") != ""
		}
		return false
	}
	if errors.Is(err, errTooLong) || IsUntrusted(err) || IsTurnedAway(err) {
		return false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return false
	}
	if refused, ok := errors.AsType[refusedByProxy](err); ok && refused.status < http.StatusInternalServerError {
		return false
	}
	return harmless || IsNotConnected(err)
}

// pauseAfter is how long to wait before the next try, and whether the server has asked for it.
func pauseAfter(resp *http.Response, try int) (pause time.Duration, asked bool) {
	pause = min(firstPause<<(try-1), longPause)
	pause = pause/2 + mathrand.N(pause/2)
	if resp == nil {
		return pause, false
	}
	wanted, asked := retryAfter(resp.Header.Get("Retry-After"), time.Now())
	return max(pause, wanted), asked
}

// retryAfter reads the header in both of its forms: seconds and a date.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second, true
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}

// sleep waits, and says false when the context ends first or is known to.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
