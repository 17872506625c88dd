package devicecloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/traces"
)

// responseLimit is the maximum size of a response in bytes; 250 codes take about 60 kB.
const responseLimit = 8 << 20

// words lists the fixed segments of paths; any other segment is an identifier.
var words = []string{
	"locks", "access_codes", "offline_codes", "actions", "auto_lock", "webhooks", "sandbox", "account", "revoke",
	"thermostat", "adjust", "room", "noise_thresholds", "noise",
}

// call is one request of the contract.
type call struct {
	method string
	path   string
	body   any
	// account means that the request is about the account, not about one lock.
	account bool
	// control means that only the sandbox implements the request.
	control bool
	// once means that the request may only be repeated if it certainly had no effect.
	once bool
}

func (c call) writes() bool { return c.method != http.MethodGet }

// do sends the request and decodes the response into out, which may be nil. It fails with an *adapter.Error that
// wraps nothing, with one joined to the context's error, or with adapter.ErrSaturated.
func (a *Adapter) do(ctx context.Context, c call, out any) (err error) {
	ctx, span := adapter.StartSpan(ctx, "devicecloud", a.base, c.method, c.path, words)
	defer func() { adapter.EndSpan(span, err) }()
	if path, _, _ := strings.Cut(c.path, "?"); slices.ContainsFunc(strings.Split(path[1:], "/"),
		func(part string) bool { return !inPath(part) }) {
		return adapter.Errorf(adapter.NotFound,
			"an identifier that consists of dots cannot be requested from the vendor")
	}
	resp, err := a.send(ctx, c)
	if err != nil {
		return err
	}
	span.Set(traces.Status(resp.StatusCode))
	defer resp.Body.Close()
	// After an upgrade, no deadline would end the reading.
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return adapter.Errorf(c.unknownOutcomeClass(), "the vendor answered in another protocol than HTTP")
	}
	var found error
	err = adapter.ReadResponse(ctx, resp.Body, responseLimit, func(data []byte) error {
		switch {
		case resp.StatusCode/100 != 2:
			found = a.classify(c, resp, data)
		case out == nil || len(data) == 0 && c.writes():
		case json.Unmarshal(data, out) != nil: // the error of Unmarshal may quote a PIN
			found = adapter.Errorf(c.unknownOutcomeClass(), "the response is not the expected JSON")
		}
		return nil
	})
	switch {
	case errors.Is(err, adapter.ErrTooLarge):
		return adapter.Errorf(
			c.unknownOutcomeClass(),
			"the response is larger than %d MiB, or has too many parts",
			responseLimit>>20,
		)
	case errors.Is(err, adapter.ErrSaturated) && !c.writes():
		return err
	case err != nil:
		return a.unansweredError(ctx, c, true, err)
	}
	return found
}

func (a *Adapter) send(ctx context.Context, c call) (*http.Response, error) {
	var body io.Reader
	if c.body != nil {
		data, err := json.Marshal(c.body)
		if err != nil {
			return nil, adapter.Errorf(adapter.Invalid, "the request cannot be written as JSON")
		}
		body = bytes.NewReader(data)
	}
	var dialing, connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// GetConn is called again when a kept connection was dead.
		GetConn: func(string) { dialing.Store(true); connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := http.NewRequestWithContext(traced, c.method, a.base+c.path, body)
	if err != nil {
		return nil, adapter.Errorf(adapter.GatewayDown, "the vendor's address is not a valid URL")
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	req.Header.Set("Accept", "application/json")
	if c.body != nil {
		req.Header.Set("Content-Type", "application/json")
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

// unansweredError returns the error of a call without a response. sent means that the vendor may have received it.
func (a *Adapter) unansweredError(ctx context.Context, c call, sent bool, err error) error {
	var failure *adapter.Error
	switch {
	case sent && c.writes():
		failure = a.failure(adapter.Unconfirmed, "no response to a write: "+adapter.Reason(err))
	case sent || errors.Is(err, context.Canceled):
		failure = a.failure(adapter.Transient, "no response: "+adapter.Reason(err))
	default:
		failure = a.failure(adapter.GatewayDown, "the vendor cannot be reached: "+adapter.Reason(err))
	}
	a.log.DebugContext(ctx, "call of the vendor failed", "method", c.method, "path", c.path, "class", failure.Class)
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", failure, ctx.Err())
	}
	return failure
}

// unknownOutcomeClass returns the class of a response that cannot be decoded.
func (c call) unknownOutcomeClass() adapter.Class {
	if c.writes() {
		return adapter.Unconfirmed
	}
	return adapter.Transient
}
