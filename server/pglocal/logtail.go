package pglocal

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
)

const (
	tailLines   = 20
	maxTailLine = 1024
)

// logTail receives the server's log, forwards it line by line, and keeps the last lines to explain why a server has
// stopped.
type logTail struct {
	log *slog.Logger

	mu      sync.Mutex
	partial []byte
	lines   []string
}

func (t *logTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for chunk := range bytes.Lines(p) {
		line, whole := bytes.CutSuffix(chunk, []byte("\n"))
		room := max(maxTailLine-len(t.partial), 0)
		t.partial = append(t.partial, line[:min(len(line), room)]...)
		if whole {
			t.add(strings.TrimSpace(string(t.partial)))
			t.partial = t.partial[:0]
		}
	}
	return len(p), nil
}

func (t *logTail) add(line string) {
	if line == "" {
		return
	}
	t.log.Log(context.Background(), logLevel(line), line, "from", "postgres")
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

// String returns the kept lines.
func (t *logTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

func (t *logTail) has(text string) bool { return strings.Contains(t.String(), text) }

// logLevel returns our level for a line of PostgreSQL's log. Errors of statements are debug messages, because our own
// code receives and handles them.
func logLevel(line string) slog.Level {
	severity, text, _ := strings.Cut(line, ":")
	if strings.Contains(text, "terminating connection due to administrator command") {
		return slog.LevelDebug // we are stopping the server
	}
	if strings.Contains(text, "connection to client lost") {
		return slog.LevelDebug // a query was canceled, such as those of a server that stops
	}
	switch severity {
	case "PANIC":
		return slog.LevelError
	case "FATAL", "WARNING":
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}
