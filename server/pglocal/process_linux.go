package pglocal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent requests sig when the thread that starts the process ends.
func dieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// serversOf returns all processes of a server on data: every process of PostgreSQL works in its data directory. An
// administrator's shell may work there, too, so the name is checked, which a wrapper may have changed slightly.
// Processes that we may not inspect belong to other users, and so to other clusters.
func serversOf(data string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		proc := filepath.Join("/proc", entry.Name())
		if cwd, err := os.Readlink(filepath.Join(proc, "cwd")); err != nil || cwd != data {
			continue
		}
		if name, err := os.ReadFile(
			filepath.Join(proc, "comm"),
		); err == nil &&
			strings.Contains(string(name), "postgres") {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
