package device

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// A request for many full locks does not hold the codes of all of them in memory, but checks all of them.
func TestCodesForManyFullLocks(t *testing.T) {
	t.Parallel()
	const full = 5000
	s, w := withWorkspace(t, "Full")
	db := s.db
	account := uuid.New()
	if _, err := db.Pool.Exec(
		t.Context(),
		`insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed)
		values ($1, $2, 'devicecloud', '', 'Full', '')`,
		account,
		w.ID,
	); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range maxTaken/full + 3 {
		ids = append(ids, uuid.NewString())
	}
	slices.Sort(ids) // in locking order: the codes of the last ones are not held
	for n, text := range ids {
		id := uuid.MustParse(text)
		if _, err := db.Pool.Exec(t.Context(), `
			insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name, online, capabilities, flags)
			values ($1, $2, $3, $4, 'august_lock', 'simulated', '', '', '', '', true, '{"online_codes": true, "code_lengths": [4]}', '{}')`, id, w.ID, account, text); err != nil {
			t.Fatal(err)
		}
		pins := make([]string, full)
		for i := range pins {
			pins[i] = fmt.Sprintf("%04d", i) // one half of all
			if n < len(ids)-1 {
				pins[i] = fmt.Sprint("elsewhere ", i)
			}
		}
		if _, err := db.Pool.CopyFrom(t.Context(), pgx.Identifier{"access_codes"}, []string{
			"access_code_id",
			"workspace_id",
			"device_id",
			"is_managed",
			"status",
			"pin_mac",
		},
			pgx.CopyFromSlice(full, func(i int) ([]any, error) {
				return []any{uuid.New(), w.ID, id, false, "set", s.keys.MAC(pinScope(id), []byte(pins[i]))}, nil
			})); err != nil {
			t.Fatal(err)
		}
	}
	p := domain.Principal{WorkspaceID: w.ID}
	if err := db.InTx(t.Context(), func(tx store.Tx) error {
		parsed := make([]uuid.UUID, len(ids))
		for i, id := range ids {
			parsed[len(ids)-1-i] = uuid.MustParse(id)
		}
		places, err := s.lockPlaces(t.Context(), tx, p, parsed)
		kept := 0
		for _, at := range places {
			kept += len(at.taken)
		}
		if kept > maxTaken+full {
			t.Errorf("%d codes are held, want at most about %d", kept, maxTaken)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	_, err := s.CreateCodes(t.Context(), p, NewCodes{NewCode: NewCode{PIN: "1234"}, DeviceIDs: ids})
	var refused *domain.Error
	if !errors.As(err, &refused) || refused.Type != "duplicate_access_code" ||
		refused.Data["device_id"] != uuid.MustParse(ids[len(ids)-1]) {
		t.Errorf("a PIN that is in use on the last lock: %v", err)
	}
	for range 3 {
		codes, err := s.CreateCodes(t.Context(), p, NewCodes{DeviceIDs: ids})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range codes {
			if *c.PIN != *codes[0].PIN || *c.PIN < "5000" {
				t.Error("a PIN that differs between locks, or is in use on the last one")
			}
		}
	}
}
