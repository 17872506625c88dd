package webhook

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
)

// An event has up to 216 kB if its device and account have the maximum metadata. It stays in memory
// until the endpoint has read it, and about 800 endpoints may do so concurrently.
const (
	mostLoad   = 32 << 20      // bytes of large events in memory while they are sent
	mostOfOne  = mostLoad / 2  // per workspace
	mostAsked  = mostOfOne / 2 // per workspace, for endpoints that are not known as prompt
	loadCopies = 3             // the copy that is read, the one that is written, and garbage of both
)

// memoryBudget limits the memory of large events. Events of one workspace first wait for each
// other, and those for suspect endpoints wait before the rest.
type loads struct {
	all *semaphore.Weighted
	mu  sync.Mutex
	of  map[uuid.UUID]*load // by workspace
	ok  map[uuid.UUID]bool  // webhooks whose last response was prompt and successful; at most maxKnownEndpoints
}

// maxKnownEndpoints is the maximum number of healthy webhooks to remember.
const mostKnown = 20_000

type load struct {
	all, asked *semaphore.Weighted
	users      int
}

func newLoads() *loads {
	return &loads{all: semaphore.NewWeighted(mostLoad), of: map[uuid.UUID]*load{}, ok: map[uuid.UUID]bool{}}
}

// setHealthy notes whether the last response of an endpoint was prompt and successful.
func (l *loads) answered(webhook uuid.UUID, prompt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !prompt {
		delete(l.ok, webhook)
		return
	}
	for other := range l.ok { // an arbitrary one, which may have been deleted
		if l.ok[webhook] || len(l.ok) < mostKnown {
			break
		}
		delete(l.ok, other)
	}
	l.ok[webhook] = true
}

// importHealth takes over the stored health of webhooks that this server is not sending to.
func (l *loads) known(prompt access.PromptWebhooks) {
	for webhook, is := range prompt {
		l.answered(webhook, is)
	}
}

// isHealthy reports whether the last response of an endpoint was prompt and successful.
func (l *loads) prompt(webhook uuid.UUID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ok[webhook]
}

// guaranteedWidth returns how many concurrent requests an endpoint gets regardless of others. For
// suspect endpoints it is one: thousands may hang, and the goroutines of each request burden the
// garbage collector.
func ownOf(e access.Endpoint) int {
	if e.Prompt {
		return firstWidth
	}
	return 1
}

// acquire waits for memory for an event of size bytes to a webhook. The caller must call free. It
// fails when ctx ends.
func (l *loads) take(ctx context.Context, workspace, webhook uuid.UUID, size int) (free func(), err error) {
	weight := min(int64(size)*loadCopies, mostAsked)
	own, well := l.join(workspace, webhook)
	rooms := []*semaphore.Weighted{own.asked, own.all, l.all}
	if well {
		rooms = rooms[1:]
	}
	free = func() { l.leave(workspace) }
	for _, room := range rooms {
		if err := room.Acquire(ctx, weight); err != nil {
			free()
			return nil, err
		}
		before := free
		free = func() { room.Release(weight); before() }
	}
	return free, nil
}

func (l *loads) join(workspace, webhook uuid.UUID) (own *load, well bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own = l.of[workspace]
	if own == nil {
		own = &load{all: semaphore.NewWeighted(mostOfOne), asked: semaphore.NewWeighted(mostAsked)}
		l.of[workspace] = own
	}
	own.users++
	return own, l.ok[webhook]
}

func (l *loads) leave(workspace uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.of[workspace]; own.users > 1 {
		own.users--
	} else {
		delete(l.of, workspace)
	}
}

// dropBodyWhenSent releases the body of a request as soon as it is written. The transport cannot
// resend such a request on another connection, but the delivery is retried later.
func lighten(req *http.Request, written func()) {
	req.Body = &outgoing{ReadCloser: req.Body, left: req.ContentLength, written: written}
	req.GetBody = nil
}

// onceBody is a request body that releases its content after the last read.
type outgoing struct {
	io.ReadCloser
	left    int64
	written func()
}

func (o *outgoing) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if o.left -= int64(n); o.left <= 0 || err != nil {
		o.ReadCloser = http.NoBody
		o.written()
	}
	return n, err
}

// Close may run during a read and has nothing to close.
func (*outgoing) Close() error { return nil }
