package store

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
)

// uuidCodec reads and writes identifiers as the 16 bytes that they are sent as. Without it pgx would make a text of each
// on the way, only because uuid.UUID has a Scan and a Value that do so.
type uuidCodec struct{ pgxuuid.UUIDCodec }

func registerUUID(m *pgtype.Map) {
	pgxuuid.Register(m) // other types and texts
	m.RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: uuidCodec{}})
}

// PlanScan says how a value is read into target.
func (c uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return uuidBytes{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

// PlanEncode says how a value is written.
func (c uuidCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case uuid.UUID, *uuid.UUID:
			return uuidBytes{}
		}
	}
	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

type uuidBytes struct{}

// Scan reads an identifier; null is the zero identifier, as it is for uuid.UUID.Scan.
func (uuidBytes) Scan(src []byte, target any) error {
	id := target.(*uuid.UUID) //nolint:forcetypeassert // PlanScan has looked
	switch len(src) {
	case 0:
		*id = uuid.Nil
	case len(id):
		copy(id[:], src)
	default:
		return fmt.Errorf("an identifier has 16 bytes, not %d", len(src))
	}
	return nil
}

// Encode writes an identifier; no identifier is null, the zero one is one.
func (uuidBytes) Encode(value any, buf []byte) ([]byte, error) {
	switch id := value.(type) {
	case uuid.UUID:
		return append(buf, id[:]...), nil
	case *uuid.UUID:
		if id != nil {
			return append(buf, id[:]...), nil
		}
	}
	return nil, nil
}
