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

// answerLimit bounds what is read of an answer; 250 codes take about 60 kB.
const answerLimit = 8 << 20

// words are those of paths; what else is in one is an identifier.
var words = []string{"locks", "access_codes", "offline_codes", "actions", "auto_lock", "webhooks", "sandbox", "account", "revoke"}

// call is one request of the contract.
type call struct {
	method  string
	path    string
	body    any
	account bool // about the account, not about one lock
	control bool // a control of the sandbox, that real vendors lack
	once    bool // it is not to be sent again unless it surely came to nothing
}

func (c call) writes() bool { return c.method != http.MethodGet }

// do makes the call and decodes its answer into out, which may be nil. It fails with an *adapter.Error,
// which wraps nothing, or with one joined to the context's error, and with adapter.ErrCrowded.
func (a *Adapter) do(ctx context.Context, c call, out any) (err error) {
	ctx, span := adapter.Trace(ctx, "devicecloud", a.base, c.method, c.path, words)
	defer func() { adapter.Traced(span, err) }()
	if path, _, _ := strings.Cut(c.path, "?"); slices.ContainsFunc(strings.Split(path[1:], "/"), func(part string) bool { return !inPath(part) }) {
		return adapter.Errorf(adapter.NotFound, "the vendor cannot be asked about an identifier of dots only")
	}
	resp, err := a.send(ctx, c)
	if err != nil {
		return err
	}
	span.Set(traces.Status(resp.StatusCode))
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols { // the connection is ours now, and no deadline would end the reading of it
		return adapter.Errorf(c.doubt(), "the vendor answered in another protocol than HTTP")
	}
	var found error
	err = adapter.ReadAnswer(ctx, resp.Body, answerLimit, func(data []byte) error {
		switch {
		case resp.StatusCode/100 != 2:
			found = a.classify(c, resp, data)
		case out == nil || len(data) == 0 && c.writes():
		case json.Unmarshal(data, out) != nil: // its error may quote a PIN
			found = adapter.Errorf(c.doubt(), "the answer is not the JSON that was expected")
		}
		return nil
	})
	switch {
	case errors.Is(err, adapter.ErrLarge):
		return adapter.Errorf(c.doubt(), "the answer is larger than %d MiB, or has too many parts", answerLimit>>20)
	case errors.Is(err, adapter.ErrCrowded) && !c.writes():
		return err
	case err != nil:
		return a.lost(ctx, c, true, err)
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
		GetConn: func(string) { dialing.Store(true); connected.Store(false) }, // again, where a kept connection was dead
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
		// A transport that is not net/http's reports no connections: it may have sent the request.
		return nil, a.lost(ctx, c, connected.Load() || !dialing.Load(), err)
	}
	return resp, nil
}

// lost is the error of a call that got no answer; sent says whether the vendor may have received it.
func (a *Adapter) lost(ctx context.Context, c call, sent bool, err error) error {
	var failure *adapter.Error
	switch {
	case sent && c.writes():
		failure = a.failure(adapter.Unconfirmed, "no answer to a write: "+adapter.Reason(err))
	case sent || errors.Is(err, context.Canceled):
		failure = a.failure(adapter.Transient, "no answer: "+adapter.Reason(err))
	default:
		failure = a.failure(adapter.GatewayDown, "the vendor cannot be reached: "+adapter.Reason(err))
	}
	a.log.DebugContext(ctx, "call of the vendor failed", "method", c.method, "path", c.path, "class", failure.Class)
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", failure, ctx.Err())
	}
	return failure
}

// doubt is the class of an answer that cannot be read.
func (c call) doubt() adapter.Class {
	if c.writes() {
		return adapter.Unconfirmed
	}
	return adapter.Transient
}
