// Package climate decides what a thermostat should be set to: direct commands, presets, schedules, and programs against
// what the device shows. It is pure: it must not know the database, the clock, or any vendor. Package thermostat loads
// the rows, calls it, and writes the difference. A Thermostat is one device at one moment:
//
//	t := climate.Thermostat{State: …, Schedules: …, Now: …}
//	before := t.Snapshot()
//	t.Observe(found)               // confirm, notice changes at the device, end attempts
//	t.Record(sent, outcome)        // the answer to a write
//	plan := t.Plan()               // apply what is due, and decide what to send
//	t.Start(*plan.Send)            // before a write is sent, so that a crash is repaired by looking again
//	t.Changes(before)              // the document to write, attempts to end, events to emit
//
// # What is in effect
//
// The baseline is what time alone selects: the running schedule that started last, otherwise the period of the weekly
// program, otherwise nothing. A transition is a change of the baseline. It replaces what the server wants, and ends
// each hold: a direct command, an activated preset, or a change at the device. In between, the last of these holds.
package climate
