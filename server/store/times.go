package store

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// registerTimes makes pgx return times in UTC. In the time zone of the host the last hours of the year 9999 may be in
// the year 10000, which JSON cannot represent.
func registerTimes(m *pgtype.Map) {
	one := &pgtype.Type{
		Name:  "timestamptz",
		OID:   pgtype.TimestamptzOID,
		Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	}
	m.RegisterType(one)
	m.RegisterType(
		&pgtype.Type{
			Name:  "_timestamptz",
			OID:   pgtype.TimestamptzArrayOID,
			Codec: &pgtype.ArrayCodec{ElementType: one},
		},
	)
}
