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

// durationFlag is a duration flag that accepts days, such as 7d.
type durationFlag = cli.FlagBase[time.Duration, cli.NoConfig, durationValue]

// durationValue is the value of a durationFlag. It implements cli.ValueCreator.
type durationValue time.Duration

// Create returns a cli.Value that stores to *to.
func (durationValue) Create(value time.Duration, to *time.Duration, _ cli.NoConfig) cli.Value {
	*to = value
	return (*durationValue)(to)
}

// ToString formats a default in the syntax of the flag, such as 30d or 10m.
func (durationValue) ToString(d time.Duration) string {
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

// Set parses the value of the flag.
func (s *durationValue) Set(text string) error {
	d, err := parseDuration(text)
	if err == nil {
		*s = durationValue(d)
	}
	return err
}

// Get returns the value as a time.Duration.
func (s *durationValue) Get() any { return time.Duration(*s) }

func (s *durationValue) String() string { return s.ToString(time.Duration(*s)) }

// parseDuration parses a Go duration, such as 1h30m, or a number of days, such as 7d.
func parseDuration(text string) (time.Duration, error) {
	days, found := strings.CutSuffix(text, "d")
	if !found {
		if d, err := time.ParseDuration(text); err == nil {
			return d, nil
		}
	} else if n, err := strconv.ParseFloat(days, 64); err == nil && math.Abs(n) < float64(math.MaxInt64/day) {
		return time.Duration(n * float64(day)), nil
	}
	return 0, fmt.Errorf("%q is not a duration such as 90m, 12h, or 30d", text)
}
