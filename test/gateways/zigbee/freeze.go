package zigbee

import (
	"os"
	"regexp"
	"syscall"
	"testing"
)

// Freeze suspends zigbee2mqtt, like an overloaded machine: its connections stay open. Thaw resumes it.
func (g *Gateway) Freeze(t testing.TB) { t.Helper(); signal(t, g.process.Signal, syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (g *Gateway) Thaw(t testing.TB) { t.Helper(); signal(t, g.process.Signal, syscall.SIGCONT) }

// FreezeBroker suspends Mosquitto, so that its connections stay half open. ThawBroker resumes it.
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

// Mosquitto's log lines about clients: connects with their user, and disconnects for any reason.
var (
	connected    = regexp.MustCompile(`New client connected from \S+ as (\S+) \(.*u'([^']*)'\)`)
	disconnected = regexp.MustCompile(`Client (\S+) (?:closed|disconnected|has exceeded)`)
)

// Connections returns the number of a user's connections to the broker.
func (g *Gateway) Connections(t testing.TB, user string) int {
	t.Helper()
	log, err := os.ReadFile(g.broker.file("mosquitto.log"))
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, m := range connected.FindAllSubmatch(log, -1) {
		if string(m[2]) == user {
			open[string(m[1])] = true
		}
	}
	for _, m := range disconnected.FindAllSubmatch(log, -1) { // client identifiers are unique
		delete(open, string(m[1]))
	}
	return len(open)
}
