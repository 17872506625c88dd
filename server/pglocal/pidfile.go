package pglocal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidFile is what a running server writes to postmaster.pid. Its lines are, in order: process id, data directory, start
// time, port, socket directory, listen address, shared memory key, status (PostgreSQL's src/include/utils/pidfile.h).
type pidFile struct {
	pid int
	// directory of the socket; empty until the server has created it
	socket string
	ready  bool // accepts connections
}

// readPidFile returns fs.ErrNotExist if no server runs on data yet.
func readPidFile(data string) (pidFile, error) {
	text, err := os.ReadFile(pidFilePath(data))
	if err != nil {
		return pidFile{}, err
	}
	lines := strings.Split(string(text), "\n")
	line := func(n int) string {
		if n > len(lines) {
			return ""
		}
		return strings.TrimSpace(lines[n-1])
	}
	pid, err := strconv.Atoi(line(1))
	if err != nil || pid <= 1 {
		return pidFile{}, fmt.Errorf("read %s: %w", pidFilePath(data), errBadPidFile)
	}
	return pidFile{pid: pid, socket: line(5), ready: line(8) == "ready"}, nil
}

// errBadPidFile is also returned for a file that is being written.
var errBadPidFile = errors.New("no process id on its first line")

func pidFilePath(data string) string { return filepath.Join(data, "postmaster.pid") }
