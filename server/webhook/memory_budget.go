package webhook

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"
)

// An event has up to 216 kB if its device and account have the maximum metadata. It stays in memory
// until the endpoint has read it, and about 800 endpoints may do so concurrently.
const (
	maxEventMemory     = 32 << 20               // bytes of large events in memory while they are sent
	maxWorkspaceMemory = maxEventMemory / 2     // per workspace
	maxSuspectMemory   = maxWorkspaceMemory / 2 // per workspace, for endpoints that are not known as prompt
	loadCopies         = 3                      // the copy that is read, the one that is written, and garbage of both
)

// memoryBudget limits the memory of large events. Events of one workspace first wait for each
// other, and those for suspect endpoints wait before the rest.
type memoryBudget struct {
	all         *semaphore.Weighted
	mu          sync.Mutex
	byWorkspace map[uuid.UUID]*workspaceBudget // by workspace
	healthy     map[uuid.UUID]bool             // webhooks whose last response was prompt and successful; at most maxKnownEndpoints
}

// maxKnownEndpoints is the maximum number of healthy webhooks to remember.
const maxKnownEndpoints = 20_000

type workspaceBudget struct {
	all, suspect *semaphore.Weighted
	users        int
}

func newMemoryBudget() *memoryBudget {
	return &memoryBudget{
		all:         semaphore.NewWeighted(maxEventMemory),
		byWorkspace: map[uuid.UUID]*workspaceBudget{},
		healthy:     map[uuid.UUID]bool{},
	}
}

// setHealthy notes whether the last response of an endpoint was prompt and successful.
func (l *memoryBudget) setHealthy(webhook uuid.UUID, prompt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !prompt {
		delete(l.healthy, webhook)
		return
	}
	for other := range l.healthy { // an arbitrary one, which may have been deleted
		if l.healthy[webhook] || len(l.healthy) < maxKnownEndpoints {
			break
		}
		delete(l.healthy, other)
	}
	l.healthy[webhook] = true
}

// importHealth takes over the stored health of webhooks that this server is not sending to.
func (l *memoryBudget) importHealth(prompt HealthByWebhook) {
	for webhook, is := range prompt {
		l.setHealthy(webhook, is)
	}
}

// isHealthy reports whether the last response of an endpoint was prompt and successful.
func (l *memoryBudget) isHealthy(webhook uuid.UUID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.healthy[webhook]
}

// guaranteedConcurrency returns how many concurrent requests an endpoint gets regardless of others. For
// suspect endpoints it is one: thousands may hang, and the goroutines of each request burden the
// garbage collector.
func guaranteedConcurrency(e Endpoint) int {
	if e.Healthy {
		return initialConcurrency
	}
	return 1
}

// acquire waits for memory for an event of size bytes to a webhook. The caller must call free. It
// fails when ctx ends.
func (l *memoryBudget) acquire(ctx context.Context, workspace, webhook uuid.UUID, size int) (free func(), err error) {
	weight := min(int64(size)*loadCopies, maxSuspectMemory)
	own, well := l.join(workspace, webhook)
	rooms := []*semaphore.Weighted{own.suspect, own.all, l.all}
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

func (l *memoryBudget) join(workspace, webhook uuid.UUID) (own *workspaceBudget, well bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own = l.byWorkspace[workspace]
	if own == nil {
		own = &workspaceBudget{
			all:     semaphore.NewWeighted(maxWorkspaceMemory),
			suspect: semaphore.NewWeighted(maxSuspectMemory),
		}
		l.byWorkspace[workspace] = own
	}
	own.users++
	return own, l.healthy[webhook]
}

func (l *memoryBudget) leave(workspace uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.byWorkspace[workspace]; own.users > 1 {
		own.users--
	} else {
		delete(l.byWorkspace, workspace)
	}
}

// dropBodyWhenSent releases the body of a request as soon as the transport has sent it. The transport cannot
// resend such a request on another connection, but the delivery is retried later.
func dropBodyWhenSent(req *http.Request, written func()) {
	req.Body = &onceBody{ReadCloser: req.Body, left: req.ContentLength, written: written}
	req.GetBody = nil
}

// onceBody is a request body that releases its content after the last read.
type onceBody struct {
	io.ReadCloser
	left    int64
	written func()
}

func (o *onceBody) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if o.left -= int64(n); o.left <= 0 || err != nil {
		o.ReadCloser = http.NoBody
		o.written()
	}
	return n, err
}

// Close may run during a read and has nothing to close.
func (*onceBody) Close() error { return nil }
