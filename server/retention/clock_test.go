package retention

import (
	"testing"
	"time"
)

const day = 24 * time.Hour

// Each row lists readings: how much time really passes, and how far the clocks and the stored time are off. now is the
// time as which the retention acts, from the real time; held means that it deletes nothing.
func TestClock_Read(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	type step struct {
		passed           time.Duration
		database, server time.Duration // off the real time
		stored           time.Duration // off the time that the server stored last; another server wrote it
		now              time.Duration // off the real time
		held             bool
	}
	for name, readings := range map[string][]step{
		"right clock": {{}, {passed: time.Minute}, {passed: time.Hour}, {passed: 30 * day}},
		"both clocks drift": {
			{database: time.Minute, server: -time.Minute},
			{passed: 30 * day, database: 3 * time.Minute, now: 3 * time.Minute},
		},
		"database jumps ahead and back": {
			{},
			{passed: 10 * time.Minute, database: 401 * day, held: true},
			{passed: time.Minute, database: 401 * day, held: true},
			{passed: time.Minute, held: true}, // the jump back
			{passed: 59 * time.Minute, held: true},
			{passed: time.Minute},
		},
		"database ahead from the start": {
			{database: 401 * day, held: true},
			{passed: 30 * day, database: 401 * day, held: true},
			{passed: 10 * time.Minute, held: true},
			{passed: time.Hour},
		},
		"server behind from the start": {{server: -day, held: true}, {passed: day, server: -day, held: true}},
		"both clocks jump and stay wrong": { // a private PostgreSQL
			{},
			{passed: 10 * time.Minute, database: 401 * day, server: 401 * day, held: true},
			{passed: time.Hour, database: 401 * day, server: 401 * day, now: 2*time.Hour + 20*time.Minute},
			{passed: day, database: 401 * day, server: 401 * day, now: 2*day + 2*time.Hour + 20*time.Minute},
		},
		"both clocks jump back": {
			{},
			{passed: time.Minute, database: -10 * day, server: -10 * day, held: true},
			{passed: time.Hour, database: -10 * day, server: -10 * day, now: -10 * day},
		},
		"started with both clocks wrong": {
			{stored: -time.Hour, database: 401 * day, server: 401 * day, now: -time.Hour},
			{passed: day, database: 401 * day, server: 401 * day, now: 2*day - time.Hour},
			{passed: day, database: 401 * day, server: 401 * day, now: 4*day - time.Hour},
		},
		"started after a month": {
			{stored: -30 * day, now: -30 * day},
			{passed: day, now: -28 * day},
			{passed: 14 * day},
		},
		"another server stores its time": {
			{},
			{passed: 10 * time.Minute, stored: 5 * time.Minute, now: -5 * time.Minute},
			{passed: 10 * time.Minute},
		},
		"machine suspended": { // which stops the monotonic time
			{},
			{database: day, server: day, held: true},
			{passed: time.Hour, database: day, server: day, now: 2 * time.Hour},
			{passed: 11 * time.Hour, database: day, server: day, now: day},
		},
	} {
		var c clock
		actual, stored := begin, begin
		for i, r := range readings {
			actual = actual.Add(r.passed)
			stored = stored.Add(r.stored)
			var now time.Time
			c, now = c.read(reading{
				database: actual.Add(r.database),
				server:   actual.Add(r.server),
				uptime:   actual.Sub(begin),
				stored:   stored,
			})
			if held := c.problem != ""; held != r.held {
				t.Errorf("%s, reading %d: held: %t (%s)", name, i, held, c.problem)
			} else if !held && !now.Equal(actual.Add(r.now)) {
				t.Errorf("%s, reading %d: acts as %s, want %s", name, i, now.Sub(actual), r.now)
			}
			if c.problem == "" {
				stored = now
				c.stored, c.storedSince = stored, c.uptime
			}
		}
	}
}
