package app

import "testing"

func TestThreads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wish              string
		usual, processors int
		want              int
	}{
		"two processors":         {"", 2, 2, 8},
		"many":                   {"", 32, 32, 32},
		"a quota of two of many": {"", 2, 32, 2},
		"set by the operator":    {"2", 2, 2, 2},
		"set by the operator to the usual number": {"4", 4, 4, 4},
	} {
		if got := threads(c.wish, c.usual, c.processors); got != c.want {
			t.Errorf("%s: %d threads, want %d", name, got, c.want)
		}
	}
}
