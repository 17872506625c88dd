package pglocal

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent does nothing, because macOS has no such signal. The next start on the directory stops an orphaned
// server.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}

// serversOf returns the first process of a server on data. Its children do not show their directory; they end soon
// after it.
func serversOf(data string) ([]int, error) {
	ps := exec.Command("ps", "-axo", "pid=,command=")
	ps.Env = childEnv()
	out, err := ps.Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		id, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.Contains(command, "postgres -D "+data+" ") {
			continue
		}
		pid, err := strconv.Atoi(id)
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
