package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// costs are what a side has taken until now, of this process and of PostgreSQL.
type costs struct {
	ours, database time.Duration // of the processors; ours is that of both sides and of those who ask, who are in it, too
	wal            int64         // bytes
	syncs          int64         // of the WAL
	commits        int64
}

// spent reads the costs so far; what a system does not tell is nothing.
func (b *bed) spent(ctx context.Context) (c costs, err error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return c, err
	}
	c.ours = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	var backend int
	// PostgreSQL 18 counts syncs elsewhere, and not by these: there they stay 0.
	err = b.pool.QueryRow(ctx, `select pg_backend_pid(), wal_bytes::bigint, coalesce((to_jsonb(pg_stat_wal)->>'wal_sync')::bigint, 0), xact_commit
		from pg_stat_wal, pg_stat_database where datname = current_database()`).
		Scan(&backend, &c.wal, &c.syncs, &c.commits)
	c.database = timeOfSiblings(backend)
	return c, err
}

// timeOfSiblings is what the processes of PostgreSQL have taken of the processors, as Linux tells: those that run, and
// those that have ended, as backends do whose request is cancelled.
func timeOfSiblings(backend int) (sum time.Duration) {
	const tick = 10 * time.Millisecond // of /proc: USER_HZ is 100
	add := func(ticks []string) {
		for _, t := range ticks {
			n, _ := strconv.ParseInt(t, 10, 64)
			sum += time.Duration(n) * tick
		}
	}
	postmaster := statOf(fmt.Sprintf("/proc/%d/stat", backend))[1]
	add(statOf("/proc/" + postmaster + "/stat")[11:15]) // user and system, its own and of children that have ended
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		if stat := statOf(f); stat[1] == postmaster {
			add(stat[11:13])
		}
	}
	return sum
}

// statOf are the fields of a process from the third, its state; empty when it has ended, or where there is no /proc.
func statOf(file string) []string {
	stat, _ := os.ReadFile(file) //nolint:gosec // of /proc
	_, rest, _ := strings.Cut(string(stat), ") ")
	return append(strings.Fields(rest), make([]string, 15)...)
}

// per says what each of n requests has taken since before.
func (c costs) per(n float64, before costs) string {
	us := func(d time.Duration) float64 { return float64(d.Microseconds()) / n }
	return fmt.Sprintf("%.0f µs here with who asks, %.0f µs of PostgreSQL; %.2f commits, %.2f syncs, %.0f bytes of WAL",
		us(c.ours-before.ours), us(c.database-before.database), float64(c.commits-before.commits)/n, float64(c.syncs-before.syncs)/n, float64(c.wal-before.wal)/n)
}
