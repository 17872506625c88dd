package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// watch looks at the processes of the provider until ended, and answers the most memory that one has taken, in KiB.
// Linux keeps the peak of each process, so looking now and then is enough.
func watch(ended <-chan struct{}) (peak int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return peak
		case <-tick.C:
			for _, pid := range providers() {
				peak = max(peak, peakOf(pid))
			}
		}
	}
}

// providers are the folders of /proc of the provider that this program has built.
func providers() (found []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasSuffix(target, "/"+program) && strings.Contains(target, "deviceaccess-bench-") {
			found = append(found, filepath.Dir(link))
		}
	}
	return found
}

func peakOf(process string) (kib int) {
	status, err := os.ReadFile(filepath.Join(process, "status"))
	if err != nil {
		return 0 // it has ended
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	fmt.Sscan(string(rest), &kib) //nolint:errcheck // 0 where there is none
	return kib
}
