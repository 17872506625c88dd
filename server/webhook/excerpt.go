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
	drainSize   = 16 << 10 // read of a response, so that its connection can be used again
)

// drains are used again: endpoints that answer at length, hundreds at once, would otherwise have the garbage collector run
// for a text of which next to nothing is kept.
var drains = sync.Pool{New: func() any { return new([drainSize]byte) }}

// excerptOf reads an answer, and returns how it begins, without what is secret.
func excerptOf(body io.Reader, secrets []string) string {
	begin := make([]byte, excerptSize) // a slow endpoint that says little keeps no more
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

// redact blanks secrets out, before it cuts: the half of one is a secret too. What was cut off is not kept.
func redact(s string, secrets []string, size int) string {
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, "***")
	}
	return strings.ToValidUTF8(strings.Clone(s[:min(len(s), size)]), "")
}
