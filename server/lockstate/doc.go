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
//
// # The phases of a code
//
// PhaseOf derives the phase of a code from its fields. The main ways through the phases:
//
//	gone --request--> waiting --time--> setting --answer, read--> set --request, time--> removing --read--> gone
//	gone --request--> setting                                     set --read--> changed outside --answer, read--> set
//	setting --answer, read--> unset --request, read--> setting
//	gone --read--> unmanaged --read--> set
//	any phase --device removed--> unknown --time--> setting, waiting, unset
//
// These are all transitions and their causes. A test compares the table with the transitions of random walks.
//
//	from            | because of     | to
//	gone            | request        | waiting, setting
//	gone            | time           | setting
//	gone            | read           | unmanaged, removing
//	unmanaged       | request        | gone, removing
//	unmanaged       | answer         | gone
//	unmanaged       | read           | gone, waiting, setting, set, changed outside
//	unmanaged       | device removed | gone
//	waiting         | request        | gone, unmanaged, setting, removing
//	waiting         | time           | gone, setting, set, removing
//	waiting         | operation      | setting
//	waiting         | answer         | setting, changed outside
//	waiting         | read           | setting, changed outside
//	waiting         | device removed | gone, removing, unknown
//	setting         | request        | gone, waiting, removing
//	setting         | time           | gone, waiting, set, unset, removing
//	setting         | answer         | waiting, set, unset, changed outside
//	setting         | read           | waiting, set, unset, changed outside
//	setting         | device removed | gone, removing, unknown
//	set             | request        | gone, unmanaged, setting, removing
//	set             | time           | gone, removing
//	set             | answer         | setting, changed outside
//	set             | read           | setting, changed outside
//	set             | device removed | gone, removing, unknown
//	unset           | request        | gone, waiting, setting, removing
//	unset           | time           | gone, setting, set, removing
//	unset           | answer         | setting
//	unset           | read           | waiting, setting, set
//	unset           | device removed | gone, removing, unknown
//	changed outside | request        | gone, unmanaged, waiting, setting, set, removing
//	changed outside | time           | gone, waiting, setting, set, removing
//	changed outside | answer         | waiting, setting, set, unset
//	changed outside | read           | waiting, setting, set, unset
//	changed outside | device removed | gone, removing, unknown
//	removing        | request        | gone
//	removing        | time           | gone
//	removing        | answer         | gone, unmanaged
//	removing        | read           | gone
//	removing        | device removed | gone
//	unknown         | request        | gone, waiting, setting, changed outside, removing
//	unknown         | time           | gone, waiting, setting, unset, changed outside, removing
//	unknown         | read           | set
//	unknown         | device removed | gone, removing
//
// The causes are:
//   - request: a request of a client (Create, Update, Remove, Convert, PullBackup, DropPool).
//   - time: Plan applies what is due: a start, an end, a timeout, the size of the backup pool.
//   - operation: an operation starts (Start), which releases the PIN of its code for the next one.
//   - answer: the vendor has answered an operation (Record, RecordPlace).
//   - read: the codes of the device were read (Observe).
//   - device removed: Plan applies that the device has left its account.
//
// What bends the ways:
//   - Schedules: a code waits until its programming time (ProgramAt). A code on the device waits for its start. At its
//     end, it must leave. A later code of the same PIN waits for its turn.
//   - Refusals: a permanent refusal ends in unset, or leaves the confirmed state in place, which may open (set) or not.
//     The server retries after a request, or after the device's other codes have changed.
//   - Failures and drift: the code stays in setting or changed outside, and the server retries with growing backoff.
//   - Grace periods: a read that lacks a code is not believed within ReadLag after a write, nor an empty one within
//     EmptyListGrace, nor one without an accepted write within Confirm. The code keeps its phase.
//   - Conversion: an unmanaged code becomes managed with the next read that shows it, and enters the phase of its
//     content.
//   - Tombstones: a code that was deleted before its write has shown leaves a tombstone. Its late arrival enters
//     removing.
//   - Backup pool: codes of the pool appear and leave in Plan (time), and go through the same phases unannounced.
//   - Offline codes: they are setting until the vendor has issued them, and then waiting or set. No read concerns them.
//   - Unmanaged devices: their codes keep their phases, and only the backup pool is removed.
package lockstate
