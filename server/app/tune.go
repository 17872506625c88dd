package app

import (
	"os"
	"runtime"
	"runtime/debug"
)

// memory is how much the runtime holds before it collects as often as it takes to hold no more. With the program itself,
// some 30 MiB, it is below the 256 MiB that no client, vendor or endpoint can have the server pass, and it is well above
// what all of them together can have it keep: at 144 MiB it was not, and half of the server's time went into collecting garbage.
const memory = 192 << 20

// Tune sets up the runtime of a program that serves, before it does anything else.
func Tune() {
	tuneThreads()
	tuneMemory()
}

// tuneMemory lets the garbage collector run less often than it would by itself: what the server keeps is a few
// megabytes, so that it would otherwise be collected hundreds of times a second under load. As it nears what the
// server should hold at most, it runs as often as that takes. The variables GOGC and GOMEMLIMIT override it.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory)
	}
}

// tuneThreads has more threads run Go than there are processors, where these are few. What has come in from the network
// while all of them are busy waits in a queue that each of them takes one of in 61 turns of up to 10 ms (runtime/proc.go),
// while the operating system prefers a thread that has waited to one that computes. The variable GOMAXPROCS overrides it.
func tuneThreads() {
	usual := runtime.GOMAXPROCS(0)
	if n := threads(os.Getenv("GOMAXPROCS"), usual, runtime.NumCPU()); n != usual { // what is set does not follow a quota any more
		runtime.GOMAXPROCS(n)
	}
}

func threads(wish string, usual, processors int) int {
	const atLeast = 8
	if wish != "" || usual != processors { // more threads would use up a quota of processor time sooner
		return usual
	}
	return max(usual, atLeast)
}
