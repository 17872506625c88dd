package adapter

import (
	"context"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
)

// What a gateway may send: each message is copied several times, and read.
const (
	gatewayPace  = 1 << 20 // bytes a second, after the first GatewayBurst
	leastMessage = 256     // bytes that a message counts as at least
)

// GatewayBurst is how many bytes a gateway may send as fast as it likes, and the most that one message may have.
const GatewayBurst = 8 << 20

// Pace keeps a gateway that sends without an end, much at a time or little, from having the server do little else.
type Pace struct{ limiter *rate.Limiter }

// NewPace is that of a connection.
func NewPace() Pace { return Pace{rate.NewLimiter(gatewayPace, GatewayBurst)} }

// Wait waits until a message of size bytes may be taken in. It fails as ctx does, and for one of more than GatewayBurst.
func (p Pace) Wait(ctx context.Context, size int) error {
	return p.limiter.WaitN(ctx, max(size, leastMessage))
}

// Web has what is no message of a WebSocket (RFC 6455, section 5.5) wait, too.
func (p Pace) Web(o websocket.DialOptions) *websocket.DialOptions {
	o.OnPingReceived = func(ctx context.Context, _ []byte) bool { return p.Wait(ctx, 0) == nil }
	o.OnPongReceived = func(ctx context.Context, _ []byte) { _ = p.Wait(ctx, 0) } // the reader is told that ctx is over
	return &o
}
