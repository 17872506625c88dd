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
	initialBackoff = 250 * time.Millisecond
	maxBackoff     = 10 * time.Second
	// maxRetryDuration bounds the retries of a request.
	maxRetryDuration = 5 * time.Minute
	// keySupportTimeout bounds the request that finds out whether the server supports idempotency keys.
	keySupportTimeout = 30 * time.Second

	// maxTries applies to servers that send no Retry-After: about eight seconds.
	maxTries = 6
	// maxTriesRetryAfter applies to servers that send Retry-After.
	maxTriesRetryAfter = 20
)

// retrying repeats requests that can succeed later. It obeys Retry-After and the context.
//
//   - Reads, updates and deletions are idempotent. They are repeated after each network failure and after 429,
//     502, 503 and 504.
//   - Creations are repeated the same way if the server supports Idempotency-Key. If that is unknown, the client
//     asks the server first.
//   - With other servers, creations are repeated only if they cannot have been carried out: after 429, 503 and a
//     failed connection.
//   - If no request has connected for longer than a restart takes, failed connections are not retried.
type retrying struct {
	next http.RoundTripper
	// base is the path of the endpoint.
	base string
	// supportsKeysFlag reports whether the server supports idempotency keys.
	supportsKeysFlag *atomic.Bool
	outage           *outage
}

// Headers of idempotent requests, and of servers that support them.
const (
	keyHeader         = "Idempotency-Key"
	acceptsKeysHeader = "Accept-Idempotency-Key"
)

func (t retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, start, key := req.Context(), time.Now(), ""
	if isCreation(req.URL.Path) {
		key = rand.Text()
	}
	doubt := false // whether an earlier try may have been carried out
	for try := 1; ; try++ {
		again, err := cloneRequest(req)
		if err != nil {
			return nil, err
		}
		if key != "" {
			again.Header.Set(keyHeader, key)
		}
		tried := time.Now()
		resp, err := t.next.RoundTrip(again)
		if err == nil && resp.Header.Get(acceptsKeysHeader) == "true" {
			t.supportsKeysFlag.Store(true)
		}
		if err == nil {
			t.outage.recordSuccess()
		}
		if doubt = doubt && !provesNotApplied(resp); doubt {
			resp, err = markInDoubt(resp, err)
		}
		harmless := isRepeatable(req.URL.Path) || key != "" && t.supportsKeysFlag.Load()
		if ctx.Err() != nil ||
			!isRetryable(resp, err, harmless) && (key == "" || !isRetryable(resp, err, true) || !t.supportsKeys(req)) {
			return resp, err
		}
		doubt = doubt || key != "" && mayHaveHappened(resp, err)
		pause, asked := backoff(resp, try)
		limit := maxTries
		if asked {
			limit = maxTriesRetryAfter
		}
		if IsNotConnected(err) && t.outage.recordFailure(tried) && !doubt {
			return resp, err
		}
		if try >= limit || time.Since(start)+pause > maxRetryDuration || !sleep(ctx, pause) {
			return resp, err
		}
	}
}

// supportsKeys reads the workspace to find out whether the server supports idempotency keys. The failure of a
// creation can be the first response of the server.
func (t retrying) supportsKeys(req *http.Request) bool {
	ctx, cancel := context.WithTimeout(req.Context(), keySupportTimeout)
	defer cancel()
	if resp, err := t.RoundTrip(workspaceRequest(req.WithContext(ctx), t.base)); err == nil {
		resp.Body.Close()
	}
	return t.supportsKeysFlag.Load()
}

// cloneRequest copies a request, with its body unread.
func cloneRequest(req *http.Request) (*http.Request, error) {
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

// isRepeatable reports whether an operation is idempotent, by the naming scheme of the contract.
func isRepeatable(urlPath string) bool {
	name := path.Base(urlPath)
	switch name {
	case "update", "delete", "convert_to_managed", "configure_auto_lock":
		return true
	}
	return isRead(urlPath) || strings.HasPrefix(name, "update_") || strings.HasPrefix(name, "delete_")
}

// isCreation reports whether an operation without a key takes effect on each call: it creates a resource, moves a bolt,
// or makes another secret.
func isCreation(urlPath string) bool {
	name := path.Base(urlPath)
	switch name {
	case "create", "lock_door", "unlock_door", "pull_backup_access_code", "rotate_secret":
		return true
	}
	return strings.HasPrefix(name, "create_")
}

// isRead reports whether an operation only reads, by the naming scheme of the contract.
func isRead(urlPath string) bool {
	name := path.Base(urlPath)
	return name == "get" || name == "list" || name == "generate_code" || name == "health" ||
		strings.HasPrefix(name, "get_") || strings.HasPrefix(name, "list_")
}

// isRetryable reports whether a retry can succeed. harmless reports whether the request can be carried out twice.
func isRetryable(resp *http.Response, err error, harmless bool) bool {
	if err == nil {
		switch resp.StatusCode {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			return true
		case http.StatusBadGateway, http.StatusGatewayTimeout:
			return harmless
		case http.StatusConflict: // with a running request of the same key, whose response the retry will receive
			return harmless && resp.Header.Get("Retry-After") != ""
		}
		return false
	}
	if errors.Is(err, errTooLong) || IsUntrusted(err) || IsTLSRejected(err) {
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

// backoff returns the pause before the next try, and whether the server sent Retry-After.
func backoff(resp *http.Response, try int) (pause time.Duration, asked bool) {
	pause = min(initialBackoff<<(try-1), maxBackoff)
	pause = pause/2 + mathrand.N(pause/2)
	if resp == nil {
		return pause, false
	}
	wanted, asked := retryAfter(resp.Header.Get("Retry-After"), time.Now())
	return max(pause, wanted), asked
}

// retryAfter parses a Retry-After header: seconds or a date.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1<<30)) * time.Second, true
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}

// sleep waits for d. It returns false if the context ends first, or has an earlier deadline.
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
