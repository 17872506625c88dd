package zigbee

import (
	"os"
	"testing"
)

// OpenBroker starts a Mosquitto that accepts clients without a user, and the given user only with its password, a
// common setup. It returns host:port and ends with the test. If Mosquitto is missing, the test is skipped, or fails
// with REQUIRE_ALL=1.
func OpenBroker(t testing.TB, user, password string) string {
	t.Helper()
	address, err := openBroker(t, user, password)
	report(t, err)
	return address
}

func openBroker(t testing.TB, user, password string) (string, error) {
	program, err := findMosquitto()
	if err != nil {
		return "", err
	}
	b := &broker{dir: t.TempDir(), program: program, users: map[string]string{}}
	if err := freePorts(&b.plain); err != nil {
		return "", err
	}
	if b.users[user], err = line(user, password); err != nil {
		return "", err
	}
	if err := b.write(); err != nil {
		return "", err
	}
	config := "persistence false\nallow_anonymous true\npassword_file " + b.file(
		"passwords",
	) + "\nlistener " + port(
		b.plain,
	) + " 127.0.0.1\n"
	// otherwise it changes to a user that cannot read these files
	if os.Geteuid() == 0 {
		config = "user root\n" + config
	}
	if err := os.WriteFile(b.file("mosquitto.conf"), []byte(config), 0o600); err != nil {
		return "", err
	}
	if err := b.start(); err != nil {
		return "", err
	}
	t.Cleanup(b.kill)
	return b.plain, nil
}
