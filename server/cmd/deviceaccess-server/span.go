package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

const day = 24 * time.Hour

// spanFlag is a flag for a length of time, which may be given in days.
type spanFlag = cli.FlagBase[time.Duration, cli.NoConfig, span]

// span is the value of such a flag.
type span time.Duration

// Create is what cli.FlagBase makes the value of a flag by.
func (span) Create(value time.Duration, to *time.Duration, _ cli.NoConfig) cli.Value {
	*to = value
	return (*span)(to)
}

// ToString shows a default as it would be given.
func (span) ToString(d time.Duration) string {
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Set reads what is given.
func (s *span) Set(text string) error {
	d, err := parseSpan(text)
	if err == nil {
		*s = span(d)
	}
	return err
}

// Get is the value.
func (s *span) Get() any { return time.Duration(*s) }

func (s *span) String() string { return s.ToString(time.Duration(*s)) }

// parseSpan reads a length of time as Go writes it, such as 1h30m, or in days, such as 7d.
func parseSpan(text string) (time.Duration, error) {
	days, found := strings.CutSuffix(text, "d")
	if !found {
		if d, err := time.ParseDuration(text); err == nil {
			return d, nil
		}
	} else if n, err := strconv.ParseFloat(days, 64); err == nil && math.Abs(n) < float64(math.MaxInt64/day) {
		return time.Duration(n * float64(day)), nil
	}
	return 0, fmt.Errorf("%q is no time such as 90m, 12h or 30d", text)
}
