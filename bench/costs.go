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

// costs are the resources used so far by this process and PostgreSQL.
type costs struct {
	// processor time; ours includes both sides and the load generator
	ours, database time.Duration
	wal            int64 // bytes
	syncs          int64 // of the WAL
	commits        int64
}

// spent returns the costs so far. Values that the system does not report are 0.
func (b *bed) spent(ctx context.Context) (c costs, err error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return c, err
	}
	c.ours = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	var backend int
	// PostgreSQL 18 counts syncs elsewhere; there, syncs stays 0.
	err = b.pool.QueryRow(
		ctx,
		`select pg_backend_pid(), wal_bytes::bigint, coalesce((to_jsonb(pg_stat_wal)->>'wal_sync')::bigint, 0), xact_commit
		from pg_stat_wal, pg_stat_database where datname = current_database()`,
	).
		Scan(&backend, &c.wal, &c.syncs, &c.commits)
	c.database = timeOfSiblings(backend)
	return c, err
}

// timeOfSiblings returns the processor time of PostgreSQL's processes on Linux. It includes ended ones, such as
// backends of canceled requests.
func timeOfSiblings(backend int) (sum time.Duration) {
	const tick = 10 * time.Millisecond // of /proc: USER_HZ is 100
	add := func(ticks []string) {
		for _, t := range ticks {
			n, _ := strconv.ParseInt(t, 10, 64)
			sum += time.Duration(n) * tick
		}
	}
	postmaster := statOf(fmt.Sprintf("/proc/%d/stat", backend))[1]
	// user and system time, its own and that of ended children
	add(statOf("/proc/" + postmaster + "/stat")[11:15])
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		if stat := statOf(f); stat[1] == postmaster {
			add(stat[11:13])
		}
	}
	return sum
}

// statOf returns the fields of a process from its state on. They are empty if the process has ended or there is no
// /proc.
func statOf(file string) []string {
	stat, _ := os.ReadFile(file) //nolint:gosec // of /proc
	_, rest, _ := strings.Cut(string(stat), ") ")
	return append(strings.Fields(rest), make([]string, 15)...)
}

// per describes the costs of each of n requests since before.
func (c costs) per(n float64, before costs) string {
	us := func(d time.Duration) float64 { return float64(d.Microseconds()) / n }
	return fmt.Sprintf("%.0f µs of this process, %.0f µs of PostgreSQL;  %.2f commits, %.2f syncs, %.0f bytes of WAL",
		us(
			c.ours-before.ours,
		), us(
			c.database-before.database,
		), float64(c.commits-before.commits)/n, float64(c.syncs-before.syncs)/n, float64(c.wal-before.wal)/n)
}
