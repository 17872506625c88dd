package app

import (
	"os"
	"runtime"
	"runtime/debug"
)

// memoryLimit is the soft memory limit of the Go runtime in bytes. With some 30 MiB of the program itself, it is below the
// 256 MiB that the server must not exceed under any load of clients, vendors, and endpoints. It is well above what they
// can make the server retain: with 144 MiB, garbage collection took half of the processor time.
const memoryLimit = 192 << 20

// Tune configures the Go runtime for a server. Call it first in main.
func Tune() {
	tuneThreads()
	tuneMemory()
}

// tuneMemory makes the garbage collector run less often. The server retains a few megabytes, so that the default would
// collect hundreds of times a second under load. Near the memory limit, the collector runs as often as needed. The
// variables GOGC and GOMEMLIMIT override it.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}

// tuneThreads raises GOMAXPROCS above the number of processors on small machines. While all Ps are busy, network events
// wait in the global queue, which a P checks once in 61 schedules of up to 10 ms (runtime/proc.go). The operating
// system prefers a waiting thread to a computing one. The variable GOMAXPROCS overrides it.
func tuneThreads() {
	usual := runtime.GOMAXPROCS(0)
	if n := threads(os.Getenv("GOMAXPROCS"), usual, runtime.NumCPU()); n != usual {
		runtime.GOMAXPROCS(n) // from now on, the runtime does not follow changes of a CPU quota
	}
}

func threads(wish string, usual, processors int) int {
	const atLeast = 8
	if wish != "" || usual != processors { // with a CPU quota, more threads would exhaust it sooner
		return usual
	}
	return max(usual, atLeast)
}
