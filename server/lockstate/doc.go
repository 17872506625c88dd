// Package lockstate decides what a lock should have and what to do next. It is pure: it knows no store, no clock, and
// makes no calls. A Lock is one device with its codes and pending attempts at one moment:
//
//	lock := lockstate.Lock{Device: …, Codes: …, Attempts: …, Now: …}
//	lock.Observe(found)            // match what was read; adopt, mark drift, end attempts
//	plan := lock.Plan()            // confirmed deletes before puts, never move a slot, permanent errors stop
//	lock.Start(op)                 // before an operation is sent, so that a crash is repaired by looking again
//	lock.Record(op, outcome)       // after it
//	lock.Changes(before)           // codes to write, attempts to end, events to emit
//
// The package must not know the database, HTTP, or any vendor, and never sees the digits of a PIN (see PIN).
package lockstate
