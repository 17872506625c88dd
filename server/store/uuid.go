package store

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
)

// uuidCodec reads and writes identifiers in binary. Without it pgx would convert them to text, because uuid.UUID
// implements Scan and Value.
type uuidCodec struct{ pgxuuid.UUIDCodec }

func registerUUID(m *pgtype.Map) {
	pgxuuid.Register(m) // other types and texts
	m.RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: uuidCodec{}})
}

// PlanScan implements pgtype.Codec.
func (c uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return uuidBytes{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

// PlanEncode implements pgtype.Codec.
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

// Scan reads an identifier. Null becomes the zero identifier, like with uuid.UUID.Scan.
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

// Encode writes an identifier. A nil pointer becomes null, but the zero identifier does not.
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
