package zigbee

import (
	"os"
	"regexp"
	"syscall"
	"testing"
)

// Freeze stops zigbee2mqtt in the middle of everything, as an overloaded machine does: its connections stay. Thaw lets
// it go on.
func (g *Gateway) Freeze(t testing.TB) { t.Helper(); signal(t, g.process.Signal, syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (g *Gateway) Thaw(t testing.TB) { t.Helper(); signal(t, g.process.Signal, syscall.SIGCONT) }

// FreezeBroker stops Mosquitto so that its connections stay half open; ThawBroker lets it go on.
func (g *Gateway) FreezeBroker(t testing.TB) {
	t.Helper()
	signal(t, g.broker.cmd.Process.Signal, syscall.SIGSTOP)
}

// ThawBroker undoes FreezeBroker.
func (g *Gateway) ThawBroker(t testing.TB) {
	t.Helper()
	signal(t, g.broker.cmd.Process.Signal, syscall.SIGCONT)
}

func signal(t testing.TB, send func(os.Signal) error, s os.Signal) {
	t.Helper()
	if err := send(s); err != nil {
		t.Fatal(err)
	}
}

// What Mosquitto logs of a client: with which user one came, and that one is gone, whatever the reason.
var (
	came = regexp.MustCompile(`New client connected from \S+ as (\S+) \(.*u'([^']*)'\)`)
	left = regexp.MustCompile(`Client (\S+) (?:closed|disconnected|has exceeded)`)
)

// Connections counts those of a user at the broker.
func (g *Gateway) Connections(t testing.TB, user string) int {
	t.Helper()
	log, err := os.ReadFile(g.broker.file("mosquitto.log"))
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, m := range came.FindAllSubmatch(log, -1) {
		if string(m[2]) == user {
			open[string(m[1])] = true
		}
	}
	for _, m := range left.FindAllSubmatch(log, -1) { // a client's identifier is used once
		delete(open, string(m[1]))
	}
	return len(open)
}
