package adapter

import (
	"net/http"
	"time"
)

// Transport is a new one for the cloud of one account, with bounds for what a vendor may send that nobody has asked for.
func Transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = AnswerHeader
	t.HTTP2 = &http.HTTP2Config{
		MaxReadFrameSize:              16 << 10,  // for as much there is room made as soon as the header of a frame has come
		MaxReceiveBufferPerStream:     256 << 10, // of an answer that nobody reads yet: 4 MiB, unless this is said
		MaxReceiveBufferPerConnection: 1 << 20,
		SendPingTimeout:               15 * time.Second, // without a frame: many calls share a connection, which may be dead
		PingTimeout:                   15 * time.Second,
	}
	return t
}
