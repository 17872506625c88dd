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

// An event is 216 kB where its device and its account have as much metadata as they may, and is kept for as long as an endpoint
// takes to read it, of which there may be some eight hundred.
const (
	mostLoad   = 32 << 20      // bytes in memory of events that carry much, while they are sent
	mostOfOne  = mostLoad / 2  // of these, those of one workspace
	mostAsked  = mostOfOne / 2 // of these, those to endpoints that were not prompt the last time
	loadCopies = 3             // as it is read, as it is written, and what either leaves behind
)

// loads is the memory for events that carry much. Those of a workspace wait for one another first, and before that those
// to endpoints that may hang.
type loads struct {
	all *semaphore.Weighted
	mu  sync.Mutex
	of  map[uuid.UUID]*load // by workspace
	ok  map[uuid.UUID]bool  // webhooks whose endpoints have answered well, and soon, the last time; of very many, some
}

const mostKnown = 20_000 // webhooks

type load struct {
	all, asked *semaphore.Weighted
	users      int
}

func newLoads() *loads {
	return &loads{all: semaphore.NewWeighted(mostLoad), of: map[uuid.UUID]*load{}, ok: map[uuid.UUID]bool{}}
}

// answered notes whether an endpoint has answered well, and soon.
func (l *loads) answered(webhook uuid.UUID, prompt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !prompt {
		delete(l.ok, webhook)
		return
	}
	for other := range l.ok { // which may have been deleted
		if l.ok[webhook] || len(l.ok) < mostKnown {
			break
		}
		delete(l.ok, other)
	}
	l.ok[webhook] = true
}

// known takes over what is written down, of webhooks that nobody here is at work on.
func (l *loads) known(prompt access.PromptWebhooks) {
	for webhook, is := range prompt {
		l.answered(webhook, is)
	}
}

// prompt says whether an endpoint has answered well, and soon, the last time.
func (l *loads) prompt(webhook uuid.UUID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ok[webhook]
}

// ownOf is how many requests an endpoint gets at once whatever others have. Where it was not prompt the last time, that is one:
// thousands may hang, and each request has goroutines that the garbage collector looks through.
func ownOf(e access.Endpoint) int {
	if e.Prompt {
		return firstWidth
	}
	return 1
}

// take waits until there is room for an event of that size on its way to a webhook, until free is called. It fails when ctx ends.
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

// lighten has a request keep what it sends only until that is written. It is not sent on another connection then; the delivery is,
// later.
func lighten(req *http.Request, written func()) {
	req.Body = &outgoing{ReadCloser: req.Body, left: req.ContentLength, written: written}
	req.GetBody = nil
}

// outgoing is a body that is let go of once it is read.
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

func (*outgoing) Close() error { return nil } // maybe while it is read; there is nothing to be closed
