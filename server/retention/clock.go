package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	// maxClockError is the difference above which the database's clock counts as wrong.
	maxClockError = 5 * time.Minute
	// plausibleFor is how long the clock must be right again until the retention deletes.
	plausibleFor = time.Hour
	// catchUp is how many times as fast as real time the retention's clock runs at most, so that a clock that is wrong
	// from the start of the server deletes at most three days' worth in a day.
	catchUp = 3
	// clockStoreInterval is the minimum change of the retention's clock that is stored.
	clockStoreInterval = time.Minute
)

// Reasons why the retention deletes nothing.
const (
	clockDiffers = "The clock of the database differs from that of this server by more than 5 minutes"
	clockJumped  = "The clock of the database or of this server has jumped, or the machine was suspended"
)

// clock decides up to when the retention may trust the clock of the database. It holds what one server has seen.
type clock struct {
	readings    int
	database    time.Time     // by the last reading
	uptime      time.Duration // of the server at the last reading
	stored      time.Time     // the stored time of the retention
	storedSince time.Duration // uptime when this server first saw it
	problem     string        // why the retention deletes nothing; empty: it deletes
	problemAt   time.Duration // uptime when the clock was last wrong
}

// reading is one look at the clocks.
type reading struct {
	database, server time.Time
	uptime           time.Duration // by the monotonic clock of the server
	stored           time.Time     // the stored time of the retention, which another server may have written
}

// read returns the clock after a reading, and the time as which the retention acts.
func (c clock) read(r reading) (next clock, now time.Time) {
	switch moved := r.database.Sub(c.database); {
	case r.database.Sub(r.server).Abs() > maxClockError:
		c.problem, c.problemAt = clockDiffers, r.uptime
	case c.readings > 0 && (moved-(r.uptime-c.uptime)).Abs() > maxClockError:
		c.problem, c.problemAt = clockJumped, r.uptime
	case r.uptime-c.problemAt >= plausibleFor:
		c.problem = ""
	}
	c.readings++
	c.database, c.uptime = r.database, r.uptime
	if !r.stored.Equal(c.stored) {
		c.stored, c.storedSince = r.stored, r.uptime
	}
	now = c.stored.Add(catchUp * (r.uptime - c.storedSince))
	if r.database.Before(now) {
		now = r.database
	}
	return c, now.Truncate(time.Microsecond) // as the database stores it
}

// readClock returns the time as which the retention acts, and why it deletes nothing, or an empty string.
func (s *Service) readClock(ctx context.Context) (now time.Time, problem string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.db.ReadRetentionClock(ctx)
	if store.IsNoRows(err) {
		if err = s.db.StartRetentionClock(ctx); err == nil {
			r, err = s.db.ReadRetentionClock(ctx)
		}
	}
	if err != nil {
		return now, "", fmt.Errorf("read the clock of the retention: %w", err)
	}
	before := s.clock.problem
	server := s.now()
	s.clock, now = s.clock.read(reading{
		database: r.Database,
		server:   server,
		uptime:   server.Sub(s.started),
		stored:   r.Stored,
	})
	switch problem = s.clock.problem; {
	case problem != "" && before != problem:
		s.log.Warn("the retention deletes nothing", "reason", problem, "database", r.Database, "server", server)
	case problem == "" && before != "":
		s.log.Info("the retention deletes again", "database", r.Database)
	}
	if problem == "" && now.Sub(r.Stored).Abs() >= clockStoreInterval {
		if err := s.db.StoreRetentionClock(
			ctx,
			dbsqlc.StoreRetentionClockParams{At: now, Known: r.Stored},
		); err != nil {
			return now, "", fmt.Errorf("store the clock of the retention: %w", err)
		}
		// If another server was faster, the next reading finds its time.
		s.clock.stored, s.clock.storedSince = now, s.clock.uptime
	}
	return now, problem, nil
}

// Problem returns why the retention of this server deletes nothing, or an empty string.
func (s *Service) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.problem
}
