package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

// maxStreams is the maximum number of streams of an operator on one instance.
const maxStreams = 5

// LiveOptions are the intervals of streams. The zero value is for production.
type LiveOptions struct {
	// Poll is how often the server looks for changes in a workspace with streams, and so the least time between two
	// events. The default is 2 s.
	Poll time.Duration
	// Heartbeat is how often a stream without events sends a comment, so that proxies keep it. The default is 20 s.
	Heartbeat time.Duration
	// Recheck is how often a stream checks the session and the role. The default is 1 min.
	Recheck time.Duration
}

func (o LiveOptions) poll() time.Duration      { return cmp.Or(o.Poll, 2*time.Second) }
func (o LiveOptions) heartbeat() time.Duration { return cmp.Or(o.Heartbeat, 20*time.Second) }
func (o LiveOptions) recheck() time.Duration   { return cmp.Or(o.Recheck, time.Minute) }

const livePath = "/live"

func (h *handler) liveRoutes() []route {
	stream := page(livePath, h.streamChanges)
	stream.automatic = true
	return []route{stream}
}

// refreshHeader marks the requests with which a live page refreshes itself. A forged one only harms its sender.
const refreshHeader = "Deviceaccess-Refresh"

// isAutomatic reports whether the page has sent the request without the operator. Such requests do not extend the
// session, so that a page that is left open ends with the idle limit.
func (rq *request) isAutomatic() bool {
	return rq.route.automatic || rq.r.Header.Get(refreshHeader) != ""
}

// streamChanges sends an event whenever something in the workspace has changed. Its identifier is the change. The
// stream ends with the session, the role, or the server.
func (h *handler) streamChanges(rq *request) error {
	operator := rq.session.Operator.ID
	if !h.live.enter(operator) {
		return &domain.Error{
			Kind: domain.TooMany,
			Type: "too_many_streams",
			Message: fmt.Sprintf(
				"Only %d pages can be live at a time. Close other tabs, or switch Live off there.",
				maxStreams,
			),
		}
	}
	defer h.live.leave(operator)
	header := rq.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // nginx sends events at once
	if rq.r.Method == http.MethodHead {
		rq.w.WriteHeader(http.StatusOK)
		return nil
	}
	s := &stream{
		request:  rq,
		control:  http.NewResponseController(rq.w),
		seen:     overview.ParseChange(cmp.Or(rq.r.Header.Get("Last-Event-ID"), rq.query("since"))),
		stopping: h.live.stopped(rq.r),
	}
	admission.Release(rq.r.Context())
	changes, unsubscribe := h.live.subscribe(rq.workspace.ID, h.Access.Overview.LastChange, h.Live.poll())
	defer unsubscribe()
	// Reading never ends, and each write extends its own deadline.
	_ = s.control.SetReadDeadline(time.Time{})
	s.run(changes)
	return nil
}

// stream is the response to a live page.
type stream struct {
	*request
	control  *http.ResponseController
	seen     overview.Change
	stopping <-chan struct{}
}

// run sends changes until the stream ends.
func (s *stream) run(changes <-chan overview.Change) {
	if !s.send(": live\n\n") {
		return
	}
	heartbeat, recheck := time.NewTicker(s.h.Live.heartbeat()), time.NewTicker(s.h.Live.recheck())
	defer heartbeat.Stop()
	defer recheck.Stop()
	for open := true; open; {
		select {
		case <-s.r.Context().Done():
			return
		case <-s.stopping:
			return
		case change := <-changes:
			open = s.sendChange(change)
		case <-heartbeat.C:
			open = s.send(": \n\n")
		case <-recheck.C:
			open = s.isAllowed()
		}
	}
}

// sendChange sends a change that the client has not seen.
func (s *stream) sendChange(c overview.Change) bool {
	seen := s.seen
	s.seen = c
	if !c.Follows(seen) {
		return true
	}
	return s.send(fmt.Sprintf("id: %s\nevent: changed\ndata: %s\n\n", c, c))
}

// send writes a text, and reports whether the client receives it. The next write is due before the deadline ends.
func (s *stream) send(text string) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.h.Live.heartbeat() + admission.WriteStallTimeout))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return false
	}
	return s.control.Flush() == nil
}

// isAllowed reports whether the operator may still see the workspace. It does not extend the session.
func (s *stream) isAllowed() bool {
	cookie, err := s.r.Cookie(s.cookieName())
	if err != nil {
		return false
	}
	session, err := s.h.Operators.FindSession(s.r.Context(), cookie.Value)
	if err != nil {
		return false
	}
	p, ok := s.h.Operators.Principal(session, s.workspace.ID)
	return ok && p.Role.Includes(s.route.role)
}

// liveHub has the streams of an instance.
type liveHub struct {
	mu sync.Mutex
	// streams counts them by operator.
	streams map[uuid.UUID]int
	topics  map[uuid.UUID]*topic
	// ends are closed when a server stops.
	ends map[*http.Server]chan struct{}
}

func newLiveHub() *liveHub {
	return &liveHub{
		streams: map[uuid.UUID]int{},
		topics:  map[uuid.UUID]*topic{},
		ends:    map[*http.Server]chan struct{}{},
	}
}

// topic is a workspace with streams.
type topic struct {
	last overview.Change // zero before the first look
	// subscribers have room for one change, the latest.
	subscribers map[chan overview.Change]struct{}
	stop        context.CancelFunc
}

func (l *liveHub) enter(operator uuid.UUID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[operator] >= maxStreams {
		return false
	}
	l.streams[operator]++
	return true
}

func (l *liveHub) leave(operator uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[operator]--; l.streams[operator] == 0 {
		delete(l.streams, operator)
	}
}

// stopped returns a channel that is closed when the server of the request shuts down, which waits for its streams.
func (l *liveHub) stopped(r *http.Request) <-chan struct{} {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	end, ok := l.ends[server]
	if !ok {
		end = make(chan struct{})
		l.ends[server] = end
		server.RegisterOnShutdown(func() { close(end) })
	}
	return end
}

// subscribe returns the changes of a workspace, of which the first is the latest one so far. The first subscriber of a
// workspace starts looking for changes, and the last one ends it.
func (l *liveHub) subscribe(
	workspace uuid.UUID,
	look func(context.Context, uuid.UUID) (overview.Change, error),
	every time.Duration,
) (changes <-chan overview.Change, unsubscribe func()) {
	own := make(chan overview.Change, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[workspace]
	if t == nil {
		ctx, stop := context.WithCancel(context.Background())
		t = &topic{subscribers: map[chan overview.Change]struct{}{}, stop: stop}
		l.topics[workspace] = t
		go l.watch(ctx, t, every, func() (overview.Change, error) { return look(ctx, workspace) })
	} else if t.last != (overview.Change{}) {
		own <- t.last
	}
	t.subscribers[own] = struct{}{}
	return own, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(t.subscribers, own); len(t.subscribers) == 0 {
			t.stop()
			delete(l.topics, workspace)
		}
	}
}

// watch looks for changes until ctx ends. While the database does not answer, it keeps trying.
func (l *liveHub) watch(ctx context.Context, t *topic, every time.Duration, look func() (overview.Change, error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if change, err := look(); err == nil {
			l.publish(t, change)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (l *liveHub) publish(t *topic, change overview.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.last == change {
		return
	}
	t.last = change
	for s := range t.subscribers {
		select {
		case <-s: // only the latest change matters
		default:
		}
		s <- change
	}
}

// isStream reports whether a pattern is that of streams, whose duration says nothing about the server.
func isStream(pattern string) bool { return strings.HasSuffix(pattern, livePath) }

// liveSince is when the page was made, for the stream that follows it.
func (rq *request) liveSince() string { return fmt.Sprint(rq.now.UnixMicro()) }
