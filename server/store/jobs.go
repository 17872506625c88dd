package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CountJobs counts available jobs by queue, at most so many in total. The table is River's.
func (db *DB) CountJobs(ctx context.Context, most int) (map[string]int64, error) {
	rows, err := db.Pool.Query(
		ctx,
		`select queue, count(*) from (select queue from river_job where state = 'available' limit $1) j group by queue`,
		most,
	)
	if err != nil {
		return nil, fmt.Errorf("count the jobs: %w", err)
	}
	out := map[string]int64{}
	var queue string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&queue, &n}, func() error { out[queue] = n; return nil })
	if err != nil {
		return nil, fmt.Errorf("count the jobs: %w", err)
	}
	return out, nil
}
