package terraform

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of processor time in Linux.
const tick = 10 * time.Millisecond

// use is the resource use of programs. It is zero without /proc.
type use struct {
	cpu time.Duration
	// peak memory of one of them, in KiB
	peak      int
	processes int
}

// watch samples the child processes of parent until ended. Linux keeps the time and peak memory of each, so samples
// suffice; only the use between the last sample and a process's end is missed.
func watch(parent int, ended <-chan struct{}) (u use) {
	ticker := time.NewTicker(2 * tick)
	defer ticker.Stop()
	took := map[int]time.Duration{}
	for {
		select {
		case <-ended:
			for _, cpu := range took {
				u.cpu += cpu
			}
			u.processes = len(took)
			return u
		case <-ticker.C:
			for _, child := range children(parent) {
				if cpu, _ := times(child); cpu > 0 {
					took[child] = cpu
				}
				u.peak = max(u.peak, peak(child))
			}
		}
	}
}

// children returns the child processes of all threads of a process.
func children(parent int) (found []int) {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent))
	for _, task := range tasks {
		listed, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", parent, task.Name()))
		for _, field := range strings.Fields(string(listed)) {
			var child int
			fmt.Sscan(field, &child) //nolint:errcheck // the kernel writes numbers
			found = append(found, child)
		}
	}
	return found
}

// times returns the processor time of a process, and that of its waited-for children.
func times(process int) (own, waited time.Duration) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 15 {
		return 0, 0 // the process has ended
	}
	var ticks [4]int64
	for i := range ticks {
		fmt.Sscan(fields[11+i], &ticks[i]) //nolint:errcheck // the kernel writes numbers
	}
	return time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick
}

// peak returns the peak memory of a process, in KiB.
func peak(process int) (kib int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	fmt.Sscan(string(rest), &kib) //nolint:errcheck // 0 if there is none
	return kib
}

// serverCPU returns the processor time of the server, which is this program, and its database so far.
func (b *bed) serverCPU() time.Duration {
	var own syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &own) != nil {
		return 0
	}
	total := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	database, ended := times(b.cluster.Pid())
	total += database + ended
	for _, backend := range children(b.cluster.Pid()) {
		cpu, _ := times(backend)
		total += cpu
	}
	return total
}
