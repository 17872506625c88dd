package api

import (
	"sync/atomic"
	"time"
)

const (
	restartsWithin = 25 * time.Second // what cannot be connected to for longer is not being restarted
	outageLasts    = 30 * time.Second // from when a connection could last not be made
)

// outage is what the requests of one client tell each other of a server that no connection can be made to. Each would find out for itself
// otherwise, which takes half a minute where packets are dropped, and a run of many resources asks hundreds of times.
type outage struct{ until atomic.Int64 } // nanoseconds since 1970

// known says whether a request has lately given up to connect.
func (o *outage) known() bool { return time.Now().UnixNano() < o.until.Load() }

// goesOn notes that a request has given up to connect.
func (o *outage) goesOn() { o.until.Store(time.Now().Add(outageLasts).UnixNano()) }

// isOver notes that a connection was made.
func (o *outage) isOver() { o.until.Store(0) }
