package webhook

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

const (
	excerptSize = 1 << 10
	// drainSize is how much of a response is read, so that its connection can be reused.
	drainSize = 16 << 10
)

// drains is a pool of buffers. Without it, hundreds of endpoints with long responses cause frequent
// garbage collections.
var drains = sync.Pool{New: func() any { return new([drainSize]byte) }}

// excerptOf reads a response and returns its beginning without secrets.
func excerptOf(body io.Reader, secrets []string) string {
	// The small buffer keeps the memory of slow endpoints low.
	begin := make([]byte, excerptSize)
	n, err := io.ReadFull(body, begin)
	if err != nil {
		return redact(string(begin[:n]), secrets, excerptSize)
	}
	room := drains.Get().(*[drainSize]byte)
	defer drains.Put(room)
	copy(room[:], begin)
	more, _ := io.ReadFull(body, room[n:])
	whole := room[:n+more]
	if !slices.ContainsFunc(secrets, func(s string) bool { return bytes.Contains(whole, []byte(s)) }) {
		whole = begin
	}
	return redact(string(whole), secrets, excerptSize)
}

// redact removes secrets and then cuts s to size. The order matters, because half a secret is a
// secret, too.
func redact(s string, secrets []string, size int) string {
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, "***")
	}
	return strings.ToValidUTF8(strings.Clone(s[:min(len(s), size)]), "")
}
