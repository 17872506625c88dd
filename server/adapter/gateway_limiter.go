package adapter

import (
	"context"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"
)

// Bounds of the traffic from a gateway: the server copies and parses each message several times.
const (
	// gatewayBytesPerSecond is in bytes per second, after the first GatewayBurst.
	gatewayBytesPerSecond = 1 << 20
	// minMessageCost is the minimum number of bytes that a message counts as.
	minMessageCost = 256
)

// GatewayBurst is the number of bytes that a gateway may send without a rate limit, and the maximum size of one
// message.
const GatewayBurst = 8 << 20

// GatewayLimiter limits the rate of a gateway's messages, so that one gateway cannot occupy the server.
type GatewayLimiter struct{ limiter *rate.Limiter }

// NewGatewayLimiter returns the limiter of one connection.
func NewGatewayLimiter() GatewayLimiter {
	return GatewayLimiter{rate.NewLimiter(gatewayBytesPerSecond, GatewayBurst)}
}

// Wait blocks until a message of size bytes may be processed. It fails when ctx ends, and for a message larger than
// GatewayBurst.
func (p GatewayLimiter) Wait(ctx context.Context, size int) error {
	return p.limiter.WaitN(ctx, max(size, minMessageCost))
}

// DialOptions returns o with control frames (RFC 6455, section 5.5) limited as well.
func (p GatewayLimiter) DialOptions(o websocket.DialOptions) *websocket.DialOptions {
	o.OnPingReceived = func(ctx context.Context, _ []byte) bool { return p.Wait(ctx, 0) == nil }
	// The reader reports the end of ctx.
	o.OnPongReceived = func(ctx context.Context, _ []byte) { _ = p.Wait(ctx, 0) }
	return &o
}
