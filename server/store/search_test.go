package store_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// A search finds the same values in a database of every locale.
func TestSearchPattern(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	for locale, dsn := range map[string]string{"Unicode": dsn, "C": created(t, dsn, "encoding 'UTF8'")} {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		for _, c := range []struct {
			value, text string
			want        bool
		}{
			{"Cleaner", "clean", true},
			{"Cleaner", "EANER", true},
			{"Cleaner", "cleaners", false},
			{"Жанна", "жанна", true},
			{"жанна", "ЖАН", true},
			{"Müller", "MÜLL", true},
			{"Muller", "Müller", false},
			{"Σίσυφος", "σΊΣΥΦΟΣ", true}, // the final form of sigma
			{"İstanbul", "istanbul", true},
			{"istanbul", "İstanbul", true},
			{"STRAẞE", "straße", true},
			{"東京 42", "京 4", true},
			{"👩‍🍳 Chef", "👩‍🍳 chef", true},
			{`a.b*c+d?e(f)g[h]i{j}k|l^m$n\o`, `.B*C+D?E(F)G[H]I{J}K|L^M$N\O`, true},
			{"abc", "a.c", false},
			{"x", "^", false},
			{`\d`, `\d`, true},
			{"1", `\d`, false},
			{"***=x_y-z&~'\"/<>,;:!@#%`", "***=X_Y-Z&~'\"/<>,;:!@#%`", true},
			{"(?i)x", "(?I)", true},
			{"two\nlines", "O\nL", true},
			{strings.Repeat("ж", 500), strings.Repeat("Ж", 500), true},
			{strings.Repeat("ж", 501), strings.Repeat("Ж", 501), false}, // longer than a search may be
		} {
			var found bool
			pattern := store.SearchPattern(c.text)
			err := conn.QueryRow(t.Context(), "select $1::text ~ $2::text", c.value, pattern).Scan(&found)
			if err != nil || found != c.want {
				t.Errorf("locale %s: %.20q in %.20q: %t, %v", locale, c.text, c.value, found, err)
			}
		}
	}
	if store.SearchPattern("") != nil {
		t.Error("the empty text is a condition")
	}
}

// The queries do not depend on the locale either.
func TestSearch_IgnoresCaseWithLocaleC(t *testing.T) {
	t.Parallel()
	dsn := created(t, storetest.New(t), "encoding 'UTF8'")
	if err := store.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	db, id := open(t, dsn), uuid.New()
	err := db.InsertWorkspace(t.Context(), dbsqlc.InsertWorkspaceParams{WorkspaceID: id, Name: "w"})
	if err == nil {
		_, err = db.Pool.Exec(t.Context(), `
			with a as (insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed, due_at)
				values ($1, $1, 'devicecloud', '', 'A', '', now()))
			insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model,
				serial_number, name, online, capabilities, flags, custom_metadata, due_at)
				values ($1, $1, $1, 'a', 'august_lock', 'simulated', '', '', '', 'Жанна', true, '{}', '{}', '{}', now())`, id)
	}
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"жанна": 1, "ЖАННА": 1, "женя": 0} {
		found, err := db.UnpreparedQueries.FindDevices(t.Context(), dbsqlc.FindDevicesParams{
			WorkspaceID: id,
			IsManaged:   true,
			Pattern:     store.SearchPattern(text),
			MaxRows:     10,
		})
		if err != nil || len(found) != want {
			t.Errorf("%s finds %d devices, %v", text, len(found), err)
		}
	}
}
