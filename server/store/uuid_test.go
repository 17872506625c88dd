package store

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

func TestIdentifiersAreReadWithoutBeingWrittenAsText(t *testing.T) {
	t.Parallel()
	m := pgtype.NewMap()
	registerUUID(m)
	want, got := uuid.New(), uuid.Nil
	if plan, ok := m.PlanScan(pgtype.UUIDOID, pgtype.BinaryFormatCode, &got).(uuidBytes); !ok {
		t.Errorf("an identifier is read by %T", plan)
	}
	if err := m.Scan(pgtype.UUIDOID, pgtype.BinaryFormatCode, want[:], &got); err != nil || got != want {
		t.Errorf("%s is read as %s: %v", want, got, err)
	}
	if err := m.Scan(pgtype.UUIDOID, pgtype.BinaryFormatCode, want[:15], &got); err == nil {
		t.Error("15 bytes are an identifier")
	}
}

func TestIdentifiersOfAllShapesAreRead(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), storetest.New(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := uuid.New()
	var one, none uuid.UUID
	var some, absent *uuid.UUID
	var many []uuid.UUID
	var anything any
	err = db.Pool.QueryRow(t.Context(), "select $1::uuid, null::uuid, $1::uuid, null::uuid, array[$1::uuid, $1::uuid], $1::uuid", want).
		Scan(&one, &none, &some, &absent, &many, &anything)
	if err != nil || one != want || none != uuid.Nil || some == nil || *some != want || absent != nil ||
		len(many) != 2 ||
		many[1] != want {
		t.Errorf("%s is read as %s, %s, %v, %v, %v: %v", want, one, none, some, absent, many, err)
	}
	if id, ok := anything.(uuid.UUID); !ok || id != want {
		t.Errorf("%s is read as %v", want, anything)
	}
}

func TestIdentifiersAreWrittenWithoutAText(t *testing.T) {
	t.Parallel()
	m := pgtype.NewMap()
	registerUUID(m)
	id := uuid.New()
	for _, value := range []any{id, &id} {
		if plan, ok := m.PlanEncode(pgtype.UUIDOID, pgtype.BinaryFormatCode, value).(uuidBytes); !ok {
			t.Errorf("%T is written by %T", value, plan)
		}
	}
	db, err := Open(t.Context(), storetest.New(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var absent *uuid.UUID
	var told []string
	err = db.Pool.QueryRow(t.Context(), `select array[$1::uuid::text, $2::uuid::text, coalesce($3::uuid::text, 'none'), $4::uuid::text, array_to_string($5::uuid[], ' '), $6::uuid::text,
		coalesce($7::uuid::text, 'none')]`, id, &id, absent, id.String(), []uuid.UUID{id, uuid.Nil}, uuid.Nil, uuid.NullUUID{}).
		Scan(&told)
	want := []string{
		id.String(),
		id.String(),
		"none",
		id.String(),
		id.String() + " " + uuid.Nil.String(),
		uuid.Nil.String(),
		"none",
	}
	if err != nil || !slices.Equal(told, want) {
		t.Errorf("%s is written as %v: %v", id, told, err)
	}
}
