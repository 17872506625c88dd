package app

import (
	"os"
	"runtime/debug"
)

// memory is how much the runtime holds before it collects as often as it takes to hold no more. With the program itself
// it is well below the 256 MiB that no client, vendor or endpoint can have the server pass.
const memory = 144 << 20

// TuneMemory lets the garbage collector run less often than it would by itself: what the server keeps is a few
// megabytes, so that it would otherwise be collected hundreds of times a second under load. As it nears what the
// server should hold at most, it runs as often as that takes. The variables GOGC and GOMEMLIMIT override it.
func TuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory)
	}
}
