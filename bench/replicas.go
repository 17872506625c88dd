package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	replicaSize = 0.01 // of what part growth has at full size
	readers     = 8
)

// measureReplicas measures what a read replica on the same machine is good for, and how late it is.
func measureReplicas(ctx context.Context, o options, size float64) (figures []figure, err error) {
	b, err := newReplicaBed(ctx, size)
	if err != nil {
		return nil, err
	}
	defer b.close()
	fmt.Fprintf(os.Stderr, "replicas: %d devices; %d rounds of %s; both databases with fsync on this machine\n", len(b.places), o.rounds, o.length)
	for _, writers := range []int{1, 8} {
		late, err := b.lateness(ctx, o, writers)
		if err != nil {
			return nil, err
		}
		shared, err := b.shared(ctx, o, writers)
		if err != nil {
			return nil, err
		}
		for _, f := range append(late, shared...) {
			f.what += fmt.Sprintf(", others who write: %d", writers)
			figures = append(figures, f)
			progress(f)
		}
	}
	return figures, nil
}

// write makes a code on some device, as a request does: with the action attempt, the event, the wake-up and the entry of the audit log.
func (b *replicaBed) write(ctx context.Context) (place, error) {
	at := b.places[rand.IntN(len(b.places))]
	p := access.Principal{WorkspaceID: at.workspace}
	ctx = access.Acting(ctx, access.Act{Principal: p, RequestID: uuid.New(), Operation: "/access_codes/create"})
	c, _, err := b.primary.access.CreateCode(ctx, p, access.NewCode{DeviceID: at.device.String()})
	at.code = c.ID
	return at, err
}

// find reads a code as /access_codes/get does.
func (n node) find(ctx context.Context, at place) (bool, error) {
	_, err := n.db.GetAccessCode(ctx, dbsqlc.GetAccessCodeParams{WorkspaceID: at.workspace, AccessCodeID: at.code, IsManaged: true})
	if store.IsNoRows(err) {
		return false, nil
	}
	return err == nil, err
}

// read does as /devices/list, /access_codes/get and /events/list do, in turns, in the largest workspace.
func (b *replicaBed) read(ctx context.Context, n node, turn int64) (err error) {
	p := access.Principal{WorkspaceID: b.workspace}
	switch turn / 2 % 3 { // each by both nodes, where they take turns
	case 0:
		_, _, err = n.access.ListDevices(ctx, p, access.DeviceFilter{}, access.Page{Limit: 20})
	case 1:
		_, err = n.find(ctx, b.places[rand.IntN(len(b.places))])
	case 2:
		_, err = n.access.ListEvents(ctx, p, access.EventFilter{Since: time.Now().Add(-store.Day).Format(time.RFC3339), Limit: 100})
	}
	return err
}

// together has so many do something over and over for a time, each at least once, and says how often a second it was done. What is
// begun is ended.
func together(ctx context.Context, clients int, until time.Time, f func(turn int64) error) (perSecond float64, err error) {
	var turn atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, clients)
	began := time.Now()
	for range clients {
		all.Go(func() {
			for first := true; (first || time.Now().Before(until)) && ctx.Err() == nil; first = false {
				if err := f(turn.Add(1)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return float64(turn.Load()) / time.Since(began).Seconds(), ctx.Err()
	}
}

// writing has so many write meanwhile; what it returns waits for their end and says how many writes there were a second.
func (b *replicaBed) writing(ctx context.Context, clients int, until time.Time) (ended func() (float64, error)) {
	var perSecond float64
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		perSecond, err = together(ctx, clients, until, func(int64) error { _, err := b.write(ctx); return err })
	}()
	return func() (float64, error) { <-done; return perSecond, err }
}

// looks is what somebody has seen who writes, and then reads: in ms each.
type looks struct {
	write, late    []float64 // a code, and how much later it was on the replica
	missed         int       // of those in late
	there, waiting []float64 // to read what was written on the primary; on the replica, once that has it
}

// lateness has somebody write and look, while others write.
func (b *replicaBed) lateness(ctx context.Context, o options, writers int) ([]figure, error) {
	var all looks
	var late, missed, waited []float64
	for i := range o.rounds + 1 {
		until := time.Now().Add(o.length)
		ended := b.writing(ctx, writers, until)
		var round looks
		_, err := together(ctx, 1, until, func(int64) error { return b.look(ctx, &round) })
		if _, other := ended(); err == nil {
			err = other
		}
		if err != nil {
			return nil, err
		}
		if i == 0 || len(round.waiting) == 0 { // a warm-up
			continue
		}
		late = append(late, median(round.late)/median(round.write))
		missed = append(missed, float64(round.missed)/float64(len(round.late)))
		waited = append(waited, median(round.waiting)/median(round.there))
		all.add(round)
	}
	if len(late) == 0 {
		return nil, fmt.Errorf("nothing was seen in rounds of %s: they are too short", o.length)
	}
	return []figure{
		{what: "how much later the replica has a code, to its write", floor: spread(all.write), ours: spread(all.late), ratios: late},
		{what: "share of reads right after the write that miss it", floor: "none on the primary", ours: fmt.Sprintf("%d of %d", all.missed, len(all.late)), ratios: missed},
		{what: "to wait for the replica and read there, to a read of the primary", floor: spread(all.there), ours: spread(all.waiting), ratios: waited},
	}, nil
}

func (l *looks) add(o looks) {
	l.write, l.late, l.missed = append(l.write, o.write...), append(l.late, o.late...), l.missed+o.missed
	l.there, l.waiting = append(l.there, o.there...), append(l.waiting, o.waiting...)
}

// look writes three times: it looks on the replica until the first is there, waits for it to have the second, and reads the third
// where it was written.
func (b *replicaBed) look(ctx context.Context, l *looks) error {
	began := time.Now()
	at, err := b.write(ctx)
	if err != nil {
		return err
	}
	written := time.Now()
	l.write = append(l.write, ms(written.Sub(began)))
	for first := true; ; first = false {
		asked := time.Now()
		found, err := b.replica.find(ctx, at)
		if err != nil {
			return err
		}
		if found {
			l.late = append(l.late, ms(asked.Sub(written)))
			break
		}
		if first {
			l.missed++
		}
		if asked.Sub(written) > patience {
			return fmt.Errorf("the replica has not got a code in %s", patience)
		}
		if err := again(ctx); err != nil {
			return err
		}
	}
	waited, err := b.afterWrite(ctx, b.replica, func() error { return b.caughtUp(ctx) })
	if err != nil {
		return err
	}
	there, err := b.afterWrite(ctx, b.primary, func() error { return nil })
	l.waiting, l.there = append(l.waiting, waited), append(l.there, there)
	return err
}

// afterWrite is how long it takes to read what was just written, once it is waited for.
func (b *replicaBed) afterWrite(ctx context.Context, n node, wait func() error) (float64, error) {
	at, err := b.write(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := wait(); err != nil {
		return 0, err
	}
	found, err := n.find(ctx, at)
	if err == nil && !found {
		err = fmt.Errorf("code %s was waited for, and is not there", at.code)
	}
	return ms(time.Since(began)), err
}

// shared compares reads of the primary with those that it shares with the replica, while others write.
func (b *replicaBed) shared(ctx context.Context, o options, writers int) ([]figure, error) {
	alone, both := []node{b.primary, b.primary}, []node{b.primary, b.replica}
	what := []string{fmt.Sprintf("reads by %d clients, half of them of the replica, to all of the primary", readers),
		"writes meanwhile", "processor time of the primary for a read, with the writes beside"}
	units := []string{"%.0f/s", "%.0f/s", "%.3f ms"}
	sides, ratios := [2][3][]float64{}, [3][]float64{}
	for i := range o.rounds + 1 {
		var round [2][3]float64
		for side, nodes := range [][]node{alone, both} {
			var err error
			if round[side], err = b.reading(ctx, o, writers, nodes); err != nil {
				return nil, err
			}
		}
		if i == 0 {
			continue
		}
		for n := range what {
			for side := range round {
				sides[side][n] = append(sides[side][n], round[side][n])
			}
			ratios[n] = append(ratios[n], round[1][n]/round[0][n])
		}
	}
	var figures []figure
	for n, what := range what {
		if median(sides[0][n]) > 0 { // a system may not tell of the time of others
			figures = append(figures, figure{what: what, floor: fmt.Sprintf(units[n], median(sides[0][n])), ours: fmt.Sprintf(units[n], median(sides[1][n])), ratios: ratios[n]})
		}
	}
	return figures, nil
}

// reading is how many reads and writes there are a second, and the processor time of the primary for each read, in ms.
func (b *replicaBed) reading(ctx context.Context, o options, writers int, nodes []node) (result [3]float64, err error) {
	if err := b.caughtUp(ctx); err != nil { // what the replica has to do for writes of before is not to be the next one's
		return result, err
	}
	var backend int
	if err := b.pool.QueryRow(ctx, "select pg_backend_pid()").Scan(&backend); err != nil {
		return result, err
	}
	before, began := timeOfSiblings(backend), time.Now()
	until := began.Add(o.length)
	ended := b.writing(ctx, writers, until)
	reads, err := together(ctx, readers, until, func(turn int64) error { return b.read(ctx, nodes[turn%2], turn) })
	writes, other := ended()
	if err == nil {
		err = other
	}
	took := timeOfSiblings(backend) - before
	return [3]float64{reads, writes, ms(took) / (reads * time.Since(began).Seconds())}, err
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// spread is a median with the slowest hundredth and the slowest.
func spread(took []float64) string {
	s := slices.Sorted(slices.Values(took))
	return strings.Join([]string{fmt.Sprintf("%.2f ms", median(s)), fmt.Sprintf("p99 %.1f", s[len(s)*99/100]), fmt.Sprintf("most %.0f", s[len(s)-1])}, ", ")
}
