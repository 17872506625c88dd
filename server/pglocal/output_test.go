package pglocal

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestLogTailKeepsTheEndAndIsBounded(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	tail := &logTail{log: slog.New(slog.NewTextHandler(&log, nil))}
	fmt.Fprint(tail, "LOG:  cut in", " two\n")
	for i := range 100 {
		fmt.Fprintf(tail, "LOG:  line %d\n", i)
	}
	fmt.Fprint(
		tail,
		"PANIC:  "+strings.Repeat("x", 100_000),
		strings.Repeat("y", 100_000)+"\nFATAL:  the end\nnot whole",
	)
	lines := strings.Split(tail.String(), "\n")
	if len(lines) != tailLines || lines[0] != "LOG:  line 82" || lines[tailLines-1] != "FATAL:  the end" {
		t.Errorf("kept %d lines, from %q to %q", len(lines), lines[0], lines[len(lines)-1])
	}
	if long := lines[tailLines-2]; len(long) != maxTailLine || !strings.HasPrefix(long, "PANIC:  xxx") {
		t.Errorf("a long line was kept with %d bytes, want its first %d", len(long), maxTailLine)
	}
	if got := log.String(); strings.Count(got, "level=ERROR") != 1 || strings.Count(got, "level=WARN") != 1 ||
		strings.Contains(got, "line 1") {
		t.Errorf("at level info were logged:\n%.300s", got)
	}
}

// Lines that our own stop causes are no warnings.
func TestLogLevel_OfLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]slog.Level{
		"FATAL:  terminating connection due to administrator command": slog.LevelDebug,
		"FATAL:  connection to client lost":                           slog.LevelDebug,
		"FATAL:  sorry, too many clients already":                     slog.LevelWarn,
		"PANIC:  could not write to file":                             slog.LevelError,
		"ERROR:  duplicate key value":                                 slog.LevelDebug,
	} {
		if got := logLevel(line); got != want {
			t.Errorf("%s is %s, want %s", line, got, want)
		}
	}
}

func TestProgressOnATerminalIsOneLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := &ProgressBar{
		out:      &out,
		terminal: true,
		what:     "Fetching",
		total:    2_000_000,
	}
	b.Add(1_000_000)
	b.Add(1_000_000)
	b.End()
	if got := out.String(); strings.Count(got, "\n") != 1 ||
		!strings.HasPrefix(got, "\rFetching  [###############               ]  50 % of 2.0 MB") ||
		!strings.HasSuffix(got, "\rFetching  [##############################] 100 % of 2.0 MB\n") {
		t.Errorf("drawn was %q", got)
	}
}

func TestProgressOfUnknownSize(t *testing.T) {
	t.Parallel()
	for terminal, want := range map[bool]string{true: "\rFetching  1.5 MB\n", false: ""} {
		var out bytes.Buffer
		b := &ProgressBar{
			out:      &out,
			terminal: terminal,
			what:     "Fetching",
			total:    -1,
		}
		b.Add(1_500_000)
		b.End()
		if got := out.String(); !strings.HasSuffix(got, want) {
			t.Errorf("drawn on a terminal %t was %q, want %q at its end", terminal, got, want)
		}
	}
}

func TestPlainProgressIsAFewLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := NewProgressBar(&out, "Fetching", 1000)
	for range 1000 {
		b.Add(1)
	}
	b.End()
	want := "Fetching (0.0 MB)\nFetching: 25 %\nFetching: 50 %\nFetching: 75 %\nFetching: 100 %\n"
	if out.String() != want {
		t.Errorf("written was %q, want %q", out.String(), want)
	}
}
