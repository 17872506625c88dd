package pglocal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	redrawInterval = 100 * time.Millisecond // on a terminal
	plainSteps     = 4                      // lines elsewhere
)

// ProgressBar shows the progress of a transfer: on a terminal as one redrawn line, elsewhere as a few lines for a log.
type ProgressBar struct {
	out      io.Writer
	terminal bool
	what     string
	total    int64 // bytes; not positive if unknown
	have     int64
	drawn    time.Time
	step     int64
}

// NewProgressBar starts a progress bar for total bytes on out, which may be nil. A total that is not positive is
// unknown.
func NewProgressBar(out io.Writer, what string, total int64) *ProgressBar {
	if out == nil {
		out = io.Discard
	}
	b := &ProgressBar{
		out:      out,
		terminal: isTerminal(out),
		what:     what,
		total:    total,
	}
	if !b.terminal {
		fmt.Fprintf(out, "%s%s\n", what, b.size())
	}
	return b
}

// Add counts n more bytes.
func (b *ProgressBar) Add(n int) {
	b.have += int64(n)
	if b.total > 0 {
		b.have = min(b.have, b.total) // total may be an estimate
	}
	if b.terminal {
		if time.Since(b.drawn) >= redrawInterval {
			b.draw()
		}
		return
	}
	if b.total <= 0 {
		return
	}
	if step := plainSteps * b.have / b.total; step > b.step {
		b.step = step
		fmt.Fprintf(b.out, "%s: %d %%\n", b.what, 100*b.have/b.total)
	}
}

func (b *ProgressBar) draw() {
	b.drawn = time.Now()
	const width = 30
	if b.total <= 0 {
		fmt.Fprintf(b.out, "\r%s  %s", b.what, megabytes(b.have))
		return
	}
	full := min(int(width*b.have/b.total), width)
	fmt.Fprintf(
		b.out,
		"\r%s  [%-*s] %3d %% of %s",
		b.what,
		width,
		strings.Repeat("#", full),
		100*b.have/b.total,
		megabytes(b.total),
	)
}

// End completes the output.
func (b *ProgressBar) End() {
	if b.terminal {
		b.draw()
		fmt.Fprintln(b.out)
	}
}

func (b *ProgressBar) size() string {
	if b.total <= 0 {
		return ""
	}
	return " (" + megabytes(b.total) + ")"
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
