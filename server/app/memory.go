package app

import (
	"os"
	"runtime/debug"
)

// TuneMemory lets the garbage collector run less often than it would by itself: what the server keeps is a few
// megabytes, so that it would otherwise be collected hundreds of times a second under load. The variable GOGC
// overrides it.
func TuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
