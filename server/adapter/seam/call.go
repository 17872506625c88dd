package seam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// responseLimit is the maximum size of a response in bytes. A page of devices takes about 1 MB.
const responseLimit = 8 << 20

// ViaHeader names the workspaces that a request comes from, so that a server refuses to become its own upstream.
const ViaHeader = "Device-Access-Via"

// call is one request.
type call struct {
	path string
	body any
	// write means that the request changes something.
	write bool
	// key is the Idempotency-Key; empty: none. The hosted API ignores it.
	key string
}

// answer describes a successful response.
type answer struct {
	// replayed means that the server repeats what it answered to an earlier request with the same key.
	replayed bool
	// size is the size of the response in bytes.
	size int
}

// do sends the request and decodes the response into out, which may be nil. It fails with an *adapter.Error, with one
// joined to the context's error, or with adapter.ErrSaturated.
func (a *Adapter) do(ctx context.Context, c call, out any) (got answer, err error) {
	ctx, span := adapter.StartSpan(ctx, Name, a.base, http.MethodPost, c.path, strings.Split(c.path, "/"))
	defer func() { adapter.EndSpan(span, err) }()
	resp, err := a.send(ctx, c)
	if err != nil {
		return got, err
	}
	span.Set(traces.Status(resp.StatusCode))
	defer resp.Body.Close()
	// After an upgrade, no deadline would end the reading.
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return got, adapter.Errorf(c.unknownOutcomeClass(), "the server answered in another protocol than HTTP")
	}
	got.replayed = resp.Header.Get("Idempotency-Replayed") == "true"
	var found error
	err = adapter.ReadResponse(ctx, resp.Body, responseLimit, func(data []byte) error {
		got.size = len(data)
		switch {
		case resp.StatusCode/100 != 2:
			found = a.classify(c, resp, data)
		case out != nil && json.Unmarshal(data, out) != nil: // the error of Unmarshal may quote a PIN
			found = adapter.Errorf(c.unknownOutcomeClass(), "the response of %s is not the expected JSON", c.path)
		}
		return nil
	})
	switch {
	case errors.Is(err, adapter.ErrTooLarge):
		return got, adapter.Errorf(
			c.unknownOutcomeClass(),
			"the response is larger than %d MiB, or has too many parts",
			responseLimit>>20,
		)
	case errors.Is(err, adapter.ErrSaturated) && !c.write:
		return got, err
	case err != nil:
		return got, a.unansweredError(ctx, c, true, err)
	}
	return got, found
}

func (a *Adapter) send(ctx context.Context, c call) (*http.Response, error) {
	data, err := json.Marshal(c.body)
	if err != nil {
		return nil, adapter.Errorf(adapter.Invalid, "the request cannot be written as JSON")
	}
	var dialing, connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// GetConn is called again when a kept connection was dead.
		GetConn: func(string) { dialing.Store(true); connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, a.base+c.path, bytes.NewReader(data))
	if err != nil {
		return nil, adapter.Errorf(adapter.GatewayDown, "the server's address is not a valid URL")
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	if a.workspace != "" {
		req.Header.Set(ViaHeader, a.workspace)
	}
	switch {
	case c.key != "":
		req.Header.Set("Idempotency-Key", c.key)
	case !c.write: // net/http repeats it on another connection, and does not send the empty header
		req.Header["Idempotency-Key"] = nil
	}
	if err := adapter.MaySend(ctx); err != nil {
		return nil, err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		// A transport other than net/http's reports no connections: it may have sent the request.
		return nil, a.unansweredError(ctx, c, connected.Load() || !dialing.Load(), err)
	}
	return resp, nil
}

// unansweredError returns the error of a call without a response. sent means that the server may have received it.
func (a *Adapter) unansweredError(ctx context.Context, c call, sent bool, err error) error {
	var failure *adapter.Error
	switch refused := adapter.AsError(err); {
	case refused != nil: // the guard refused the address
		failure = refused
	case sent && c.write:
		failure = a.failure(adapter.Unconfirmed, "no response to a write: "+adapter.Reason(err))
	case sent || errors.Is(err, context.Canceled):
		failure = a.failure(adapter.Transient, "no response: "+adapter.Reason(err))
	default:
		failure = a.failure(adapter.GatewayDown, "the server cannot be reached: "+adapter.Reason(err))
	}
	a.slog.DebugContext(ctx, "call of the upstream server failed", "path", c.path, "class", failure.Class)
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", failure, ctx.Err())
	}
	return failure
}

// unknownOutcomeClass returns the class of a response that cannot be decoded.
func (c call) unknownOutcomeClass() adapter.Class {
	if c.write {
		return adapter.Unconfirmed
	}
	return adapter.Transient
}

// read sends a request that changes nothing.
func (a *Adapter) read(ctx context.Context, path string, body, out any) error {
	_, err := a.do(ctx, call{path: path, body: body}, out)
	return err
}

// Bounds of a whole list, so that a server whose list does not end costs neither memory nor a worker.
const (
	// maxPages bounds the pages.
	maxPages = 200
	// maxListSize bounds the responses in bytes. The description of a device takes about 2 kB.
	maxListSize = 128 << 20
	// listTimeout bounds the time for all pages.
	listTimeout = 3 * time.Minute
	// maxCursorSize bounds the cursor of a page in bytes.
	maxCursorSize = 4 << 10
)

// listPages reads all pages of a list. page returns where to decode a page, and add receives each decoded page. A list
// beyond the bounds fails with Transient.
func (a *Adapter) listPages(
	ctx context.Context,
	path string,
	params map[string]any,
	page func() (into any, cursor *pagination),
	add func() error,
) error {
	limited, cancel := context.WithTimeout(ctx, a.listTimeout)
	defer cancel()
	size, last := 0, ""
	for range maxPages {
		into, cursor := page()
		got, err := a.do(limited, call{path: path, body: params}, into)
		if err != nil && limited.Err() != nil && ctx.Err() == nil {
			return adapter.Errorf(adapter.Transient, "the list of %s takes longer than %s", path, a.listTimeout)
		}
		if err != nil {
			return err
		}
		if err := add(); err != nil {
			return err
		}
		next := cursor.NextPageCursor
		size += got.size
		switch {
		case !cursor.HasNextPage || next == "":
			return nil
		case next == last || len(next) > maxCursorSize:
			return adapter.Errorf(adapter.Transient, "the list of %s has a page that leads to no other one", path)
		case size > a.maxListSize:
			return adapter.Errorf(adapter.Transient, "the list of %s is larger than %d bytes", path, a.maxListSize)
		}
		params["page_cursor"], last = next, next
	}
	return adapter.Errorf(adapter.Transient, "the list of %s has more than %d pages", path, maxPages)
}

// pagination is the end of a page. Servers without pages omit it.
type pagination struct {
	HasNextPage    bool   `json:"has_next_page"`
	NextPageCursor string `json:"next_page_cursor"`
}
