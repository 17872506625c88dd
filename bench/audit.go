package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

const auditBatch = 500 // entries that are put in one transaction, so that its sync is not what is measured

// measureAudit asks an audit log what was changed in one workspace, with and without an index of workspaces.
func measureAudit(ctx context.Context, o options) (figures []figure, err error) {
	b := &auditBed{}
	defer b.close()
	if err := b.fill(ctx, o.rows); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "audit: %d entries of %d workspaces in %d days, %d rounds in turns, with fsync\n", o.rows, growthWorkspaces, auditDays, o.rounds)
	for _, q := range []struct {
		what      string
		workspace int
		since     time.Duration
		most      int
	}{
		{"all of the smallest workspace", growthWorkspaces, 0, 0},
		{"20 of the smallest workspace", growthWorkspaces, 0, 20},
		{"a week of the smallest workspace", growthWorkspaces, 7 * store.Day, 0},
		{"20 of the largest workspace", 1, 0, 20},
		{"a week of the largest workspace", 1, 7 * store.Day, 0},
	} {
		var found int
		f, err := b.compare(o.rounds, "%.1f ms", func(s *access.Service, _ *store.DB) (took float64, err error) {
			began := time.Now()
			found, err = shown(ctx, s, q.workspace, q.since, q.most)
			return ms(time.Since(began)), err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.what, err)
		}
		f.what = fmt.Sprintf("%s, which is %d", q.what, found)
		figures = append(figures, f)
		progress(f)
	}
	if err := b.complete(ctx); err != nil {
		return nil, err
	}
	puts, err := b.puts(ctx, o.rounds)
	return append(figures, puts...), err
}

// shown counts what `deviceaccess-server audit --workspace` would show.
func shown(ctx context.Context, s *access.Service, workspace int, since time.Duration, most int) (n int, err error) {
	id := auditWorkspace(workspace)
	f := access.AuditFilter{WorkspaceID: &id}
	if since > 0 {
		f.Since = time.Now().Add(-since)
	}
	for _, err := range s.Audit(ctx, f) {
		if err != nil {
			return n, err
		}
		if n++; n == most {
			break
		}
	}
	return n, nil
}

// puts is what the index costs each change.
func (b *auditBed) puts(ctx context.Context, rounds int) ([]figure, error) {
	var log [2][]float64
	took, err := b.compare(rounds, "%.1f µs", func(_ *access.Service, db *store.DB) (float64, error) {
		before, err := b.log(ctx)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		err = db.InTx(ctx, func(tx store.Tx) error {
			var errs []error
			for i := range auditBatch {
				w := auditWorkspace(1 + i*i%growthWorkspaces)
				errs = append(errs, tx.PutAuditEntry(ctx, dbsqlc.PutAuditEntryParams{AuditID: uuid.Must(uuid.NewV7()), WorkspaceID: &w, ActorKind: "api_key", Operation: "/access_codes/create",
					SubjectKinds: []string{"access_code_id", "device_id", "action_attempt_id"}, SubjectIds: []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}, Outcome: "begun"}))
			}
			return errors.Join(errs...)
		})
		each := ms(time.Since(began)) * 1000 / auditBatch
		after, logged := b.log(ctx)
		side := 0
		if db == b.with.db {
			side = 1
		}
		log[side] = append(log[side], (after-before)/auditBatch)
		return each, errors.Join(err, logged)
	})
	if err != nil {
		return nil, err
	}
	took.what = "to put an entry, without the commit"
	bytes := figure{what: "the log of an entry", floor: fmt.Sprintf("%.0f bytes", median(log[0])), ours: fmt.Sprintf("%.0f bytes", median(log[1]))}
	for i := range log[0] {
		bytes.ratios = append(bytes.ratios, log[1][i]/log[0][i])
	}
	bytes.ratios = bytes.ratios[1:] // of the warm-up
	sizes, err := b.space(ctx)
	progress(took)
	progress(bytes)
	return []figure{took, bytes, sizes}, err
}

// compare measures without and with the index, in turns after a warm-up.
func (b *auditBed) compare(rounds int, unit string, measure func(*access.Service, *store.DB) (float64, error)) (f figure, err error) {
	var without, with []float64
	for i := range rounds + 1 {
		var took [2]float64
		for n := range 2 {
			which := (n + i) % 2
			at := []node{b.without, b.with}[which]
			if took[which], err = measure(at.access, at.db); err != nil {
				return f, err
			}
		}
		if i > 0 {
			without, with, f.ratios = append(without, took[0]), append(with, took[1]), append(f.ratios, took[1]/took[0])
		}
	}
	f.floor, f.ours = fmt.Sprintf(unit, median(without)), fmt.Sprintf(unit, median(with))
	return f, nil
}

func (b *auditBed) log(ctx context.Context) (bytes float64, err error) {
	err = b.without.db.Pool.QueryRow(ctx, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8").Scan(&bytes)
	return bytes, err
}

func (b *auditBed) space(ctx context.Context) (figure, error) {
	var without, with float64
	err := b.without.db.Pool.QueryRow(ctx, fmt.Sprintf("select pg_total_relation_size('%s.audit_log')::float8 / 1e6, pg_total_relation_size('%s.audit_log')::float8 / 1e6", schemaWithout, schemaWith)).Scan(&without, &with)
	return figure{what: "the table with its indexes", floor: fmt.Sprintf("%.0f MB", without), ours: fmt.Sprintf("%.0f MB", with), ratios: []float64{with / without}}, err
}

func newNode(ctx context.Context, dsn string, keys *encryption.Keys) (n node, err error) {
	if n.db, err = store.Open(ctx, dsn, 2); err == nil {
		n.access = access.New(n.db, keys, nil, access.Options{})
	}
	return n, err
}
