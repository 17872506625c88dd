package pglocal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pidFile is what a running server writes to postmaster.pid. Its lines are, in order: process id, data
// directory, start time, port, socket directory, listen address, shared memory key, status
// (PostgreSQL's src/include/utils/pidfile.h).
type pidFile struct {
	pid    int
	socket string // directory of the socket; empty while the server has not made it
	ready  bool   // takes connections
}

// readPidFile fails with fs.ErrNotExist when no server runs, or runs yet, on data.
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

// errBadPidFile is also what a file that is just being written looks like.
var errBadPidFile = errors.New("no process id on its first line")

func pidFilePath(data string) string { return filepath.Join(data, "postmaster.pid") }
