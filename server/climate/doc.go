// Package climate decides what a thermostat should be set to: direct commands, presets, schedules, and programs against
// what the device shows. It is pure: it must not know the database, the clock, or any vendor. Package thermostat loads
// the rows, calls it, and writes the difference.
package climate
