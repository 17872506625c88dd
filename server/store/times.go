package store

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// registerTimes has times read in UTC, as the API tells them. pgx would read them in the zone of the host, in which the last hours of the
// year 9999 may be of the year 10000, and those are not to be written in an answer.
func registerTimes(m *pgtype.Map) {
	one := &pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}}
	m.RegisterType(one)
	m.RegisterType(&pgtype.Type{Name: "_timestamptz", OID: pgtype.TimestamptzArrayOID, Codec: &pgtype.ArrayCodec{ElementType: one}})
}
