package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const (
	partitionsSize = 0.1 // of what part growth has at full size: 100,000 devices and a million codes
)

// measurePartitions compares devices and codes that are in one table each with the same in partitions by workspace.
func measurePartitions(ctx context.Context, o options, size float64) (figures []figure, err error) {
	bed, err := newBed(ctx, 1)
	if err != nil {
		return nil, err
	}
	b := &partitionsBed{listBed: &listBed{bed: bed}, asks: o.asks}
	defer b.close()
	if err := b.fill(ctx, size); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "partitions: %d of 1,000 workspaces, %d devices, %d rounds in turns, with fsync\n", partitionsOfHash, len(b.places), o.rounds)
	for _, what := range []func(context.Context, int) ([]figure, error){b.statements, b.space, b.vacuums} {
		measured, err := what(ctx, o.rounds)
		if err != nil {
			return nil, err
		}
		figures = append(figures, measured...)
	}
	return figures, nil
}

type partitionsBed struct {
	*listBed
	one, parts *side
	asks       int
	places     []place
}

func (b *partitionsBed) fill(ctx context.Context, size float64) (err error) {
	if err := b.prepare(ctx); err != nil {
		return fmt.Errorf("prepare the rows that are copied: %w", err)
	}
	if err := b.fillDevices(ctx, size); err != nil {
		return err
	}
	if b.one, err = b.newSide(ctx, "bench_one", 0); err != nil {
		return err
	}
	if b.parts, err = b.newSide(ctx, "bench_parts", partitionsOfHash); err != nil {
		return err
	}
	b.places, err = b.allPlaces(ctx)
	return err
}

// allPlaces are all devices that were filled in, in no order.
func (b *listBed) allPlaces(ctx context.Context) ([]place, error) {
	rows, err := b.pool.Query(ctx, "select workspace_id, device, code from bench_devices order by md5(n::text)")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p place, err error) {
		return p, row.Scan(&p.workspace, &p.device, &p.code)
	})
}

func (b *partitionsBed) close() {
	for _, s := range []*side{b.one, b.parts} {
		if s != nil && s.db != nil {
			s.db.Close()
		}
	}
	b.listBed.close()
}

// asked are statements of the server, as it runs them.
var asked = []struct {
	what string
	ask  func(ctx context.Context, db *store.DB, at place) error
}{
	{"100 devices of a workspace, planned anew", func(ctx context.Context, db *store.DB, at place) error {
		_, err := db.PlannedAnew.FindDevices(ctx, dbsqlc.FindDevicesParams{WorkspaceID: at.workspace, IsManaged: true, MaxRows: 100})
		return err
	}},
	{"100 devices of a workspace, prepared", func(ctx context.Context, db *store.DB, at place) error {
		_, err := db.ListDevices(ctx, dbsqlc.ListDevicesParams{WorkspaceID: at.workspace, MaxRows: 100})
		return err
	}},
	{"a code by identifier and workspace, planned anew", func(ctx context.Context, db *store.DB, at place) error {
		_, err := db.PlannedAnew.FindAccessCode(ctx, dbsqlc.FindAccessCodeParams{WorkspaceID: at.workspace, AccessCodeID: at.code})
		return err
	}},
	{"a code by identifier and workspace, prepared", func(ctx context.Context, db *store.DB, at place) error {
		_, err := db.FindAccessCode(ctx, dbsqlc.FindAccessCodeParams{WorkspaceID: at.workspace, AccessCodeID: at.code})
		return err
	}},
	{"the same with its device, which is joined by identifier alone, prepared", func(ctx context.Context, db *store.DB, at place) error {
		_, err := db.GetAccessCode(ctx, dbsqlc.GetAccessCodeParams{WorkspaceID: at.workspace, AccessCodeID: at.code, IsManaged: true})
		return err
	}},
	{"codes of a device without its workspace, planned anew", func(ctx context.Context, db *store.DB, at place) error {
		_, err := db.PlannedAnew.AllCodesOfDevice(ctx, at.device)
		return err
	}},
	{"codes of a device without its workspace, prepared", func(ctx context.Context, db *store.DB, at place) error {
		_, err := db.AllCodesOfDevice(ctx, at.device)
		return err
	}},
	{"a code deleted by its identifier alone, and undone", func(ctx context.Context, db *store.DB, at place) error {
		err := db.InTx(ctx, func(tx store.Tx) error { return errors.Join(tx.DeleteAccessCode(ctx, at.code), errUndone) })
		if errors.Is(err, errUndone) && err.Error() == errUndone.Error() {
			return nil
		}
		return err
	}},
}

// statements are what the server asks, of one device after the other.
func (b *partitionsBed) statements(ctx context.Context, rounds int) (figures []figure, err error) {
	for _, a := range asked {
		f := figure{what: a.what}
		var one, parts []float64
		for i := range rounds + 1 {
			took, err := b.inTurns(i, func(s *side) (float64, error) {
				var each []float64
				for range b.asks {
					at, began := b.places[rand.IntN(len(b.places))], time.Now()
					if err := a.ask(ctx, s.db, at); err != nil {
						return 0, err
					}
					each = append(each, ms(time.Since(began)))
				}
				return median(each), nil
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.what, err)
			}
			if i > 0 {
				one, parts, f.ratios = append(one, took[0]), append(parts, took[1]), append(f.ratios, took[1]/took[0])
			}
		}
		f.floor, f.ours = fmt.Sprintf("%.3f ms", median(one)), fmt.Sprintf("%.3f ms", median(parts))
		figures = append(figures, f)
		progress(f)
	}
	return figures, nil
}

// inTurns measures one table, and then the partitions, or the other way around.
func (b *partitionsBed) inTurns(round int, measure func(*side) (float64, error)) (took [2]float64, err error) {
	for n := range 2 {
		which := (n + round) % 2
		if took[which], err = measure([]*side{b.one, b.parts}[which]); err != nil {
			return took, err
		}
	}
	return took, nil
}

func (b *partitionsBed) space(ctx context.Context, _ int) ([]figure, error) {
	indexes, all, _, err := b.sizes(ctx, b.one)
	if err != nil {
		return nil, err
	}
	indexesOfParts, allParts, largest, err := b.sizes(ctx, b.parts)
	mb := func(bytes float64) string { return fmt.Sprintf("%.0f MB", bytes/1e6) }
	return []figure{
		{what: "indexes of devices and codes", floor: mb(indexes), ours: mb(indexesOfParts), ratios: []float64{indexesOfParts / indexes}},
		{what: "both with their indexes", floor: mb(all), ours: mb(allParts), ratios: []float64{allParts / all}},
		{what: "of that, the largest partition, to all partitions", floor: mb(allParts), ours: mb(largest), ratios: []float64{largest / allParts}},
	}, err
}

// vacuums are those of codes, a twentieth of which were updated.
func (b *partitionsBed) vacuums(ctx context.Context, rounds int) ([]figure, error) {
	whole, longest := figure{what: "vacuum of codes after 5 % were updated"}, figure{what: "the longest of its parts, to the vacuum of one table"}
	var one, parts, most []float64
	for i := range rounds {
		var part float64
		took, err := b.inTurns(i, func(s *side) (sum float64, err error) {
			sum, part, err = b.vacuum(ctx, s, i)
			if s == b.parts {
				most = append(most, part)
			}
			return sum, err
		})
		if err != nil {
			return nil, err
		}
		one, parts = append(one, took[0]), append(parts, took[1])
		whole.ratios, longest.ratios = append(whole.ratios, took[1]/took[0]), append(longest.ratios, most[i]/took[0])
	}
	ms := func(v []float64) string { return fmt.Sprintf("%.0f ms", median(v)) }
	whole.floor, whole.ours, longest.floor, longest.ours = ms(one), ms(parts), ms(one), ms(most)
	progress(whole)
	progress(longest)
	return []figure{whole, longest}, nil
}

// vacuum updates another twentieth each time, and says how long all of its tables take then, and the one that takes longest, in ms.
func (b *partitionsBed) vacuum(ctx context.Context, s *side, round int) (sum, longest float64, err error) {
	const touch = "update %s.access_codes set attempts = attempts + 1 where (hashtext(access_code_id::text) & 2147483647) %% 20 = %d"
	for _, sql := range []string{fmt.Sprintf(touch, s.schema, round%20), "checkpoint"} {
		if _, err := b.pool.Exec(ctx, sql); err != nil {
			return 0, 0, err
		}
	}
	for _, table := range s.tables("access_codes") {
		began := time.Now()
		if _, err := b.pool.Exec(ctx, "vacuum "+table); err != nil {
			return 0, 0, err
		}
		took := ms(time.Since(began))
		sum, longest = sum+took, max(longest, took)
	}
	return sum, longest, nil
}
