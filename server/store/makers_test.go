package store_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Whatever is due in a workspace is found with who has made it, and not found where that one has enough in hand.
func TestWhatIsDueIsFoundByTheMakerOfItsWorkspace(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	maker := uuid.New()
	// one workspace with one of everything, whose identifiers are the workspace's own
	workspace := func(maker uuid.UUID) uuid.UUID {
		id := uuid.New()
		if err := db.InsertWorkspace(
			t.Context(),
			dbsqlc.InsertWorkspaceParams{WorkspaceID: id, Name: "w", CreatedBy: maker},
		); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Pool.Exec(t.Context(), `
			with a as (insert into connected_accounts (connected_account_id, workspace_id, adapter, provider, display_name, config_sealed, due_at)
				values ($1, $1, 'devicecloud', '', 'A', '', now())),
			d as (insert into devices (device_id, workspace_id, connected_account_id, vendor_ref, device_type, provider, manufacturer, model, serial_number, name,
				online, capabilities, flags, custom_metadata, due_at)
				values ($1, $1, $1, 'a', 'august_lock', 'simulated', '', '', '', '', true, '{}', '{}', '{}', now())),
			s as (insert into acs_systems (acs_system_id, workspace_id, connected_account_id, vendor_ref, name) values ($1, $1, $1, 'a', 'S')),
			e as (insert into events (event_id, workspace_id, event_type, payload) values ($1, $1, 'device.connected', '{}'))
			insert into webhooks (webhook_id, workspace_id, url, event_types, secret_sealed, due_at) values ($1, $1, 'https://a.example', '{*}', '', now())`, id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	made, given := workspace(maker), workspace(uuid.Nil)
	none := []uuid.UUID{}
	for name, lane := range map[string]struct {
		due    func(ctx context.Context, but []uuid.UUID) ([]uuid.UUID, error)
		makers func(ctx context.Context, of []uuid.UUID) ([]uuid.UUID, error)
	}{
		"devices": {func(ctx context.Context, but []uuid.UUID) ([]uuid.UUID, error) {
			return db.DueDevices(ctx, dbsqlc.DueDevicesParams{
				MaxRows:           10,
				ExcludeAccounts:   none,
				ExcludeWorkspaces: none,
				ExcludeCreators:   but,
			})
		}, func(ctx context.Context, of []uuid.UUID) ([]uuid.UUID, error) {
			return makers(db.DeviceOwners(ctx, of))(func(r dbsqlc.DeviceOwnersRow) uuid.UUID { return r.CreatedBy })
		}},
		"accounts": {func(ctx context.Context, but []uuid.UUID) ([]uuid.UUID, error) {
			return db.DueAccounts(ctx, dbsqlc.DueAccountsParams{MaxRows: 10, ExcludeWorkspaces: none, ExcludeCreators: but})
		}, func(ctx context.Context, of []uuid.UUID) ([]uuid.UUID, error) {
			return makers(db.AccountOwners(ctx, of))(func(r dbsqlc.AccountOwnersRow) uuid.UUID { return r.CreatedBy })
		}},
		"access systems": {func(ctx context.Context, but []uuid.UUID) ([]uuid.UUID, error) {
			return db.DueAcsSystems(ctx, dbsqlc.DueAcsSystemsParams{
				MaxRows:           10,
				ExcludeAccounts:   none,
				ExcludeWorkspaces: none,
				ExcludeCreators:   but,
			})
		}, func(ctx context.Context, of []uuid.UUID) ([]uuid.UUID, error) {
			return makers(db.AcsSystemOwners(ctx, of))(func(r dbsqlc.AcsSystemOwnersRow) uuid.UUID { return r.CreatedBy })
		}},
		"webhooks": {func(ctx context.Context, but []uuid.UUID) ([]uuid.UUID, error) {
			rows, err := db.DueWebhooks(ctx, dbsqlc.DueWebhooksParams{
				MaxRows:                  10,
				ExcludeWorkspaces:        none,
				ExcludeCreators:          but,
				ExcludeSuspectWorkspaces: none,
				ExcludeSuspectCreators:   none,
			})
			var ids []uuid.UUID
			for _, r := range rows {
				ids = append(ids, r.WebhookID)
			}
			return ids, err
		}, func(ctx context.Context, of []uuid.UUID) ([]uuid.UUID, error) {
			return makers(db.WebhookOwners(ctx, of))(func(r dbsqlc.WebhookOwnersRow) uuid.UUID { return r.CreatedBy })
		}},
		"outboxes": {func(ctx context.Context, but []uuid.UUID) ([]uuid.UUID, error) {
			return db.DueOutboxes(ctx, dbsqlc.DueOutboxesParams{MaxRows: 10, ExcludeCreators: but})
		}, func(ctx context.Context, of []uuid.UUID) ([]uuid.UUID, error) {
			return makers(db.ListWorkspaceCreators(ctx, of))(func(r dbsqlc.ListWorkspaceCreatorsRow) uuid.UUID { return r.CreatedBy })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := lane.due(t.Context(), none)
			others, e := lane.due(t.Context(), []uuid.UUID{maker})
			if err != nil || e != nil || len(all) != 2 || !slices.Equal(others, []uuid.UUID{given}) {
				t.Errorf("of two %d are found, %v, and %v where one's are not wanted, %v", len(all), err, others, e)
			}
			for of, want := range map[uuid.UUID]uuid.UUID{made: maker, given: uuid.Nil} {
				if got, err := lane.makers(
					t.Context(),
					[]uuid.UUID{of},
				); err != nil || len(got) > 1 ||
					append(got, uuid.Nil)[0] != want {
					t.Errorf("made by %v, %v, want %s", got, err, want)
				}
			}
		})
	}
}

// Where enough in hand is doubted, only webhooks are found whose endpoints have been prompt the last time.
func TestDueWebhooksAreFoundByWhetherTheyArePrompt(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	workspace, maker, prompt, doubted := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	if err := db.InsertWorkspace(
		t.Context(),
		dbsqlc.InsertWorkspaceParams{WorkspaceID: workspace, Name: "w", CreatedBy: maker},
	); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uuid.UUID{prompt, doubted} {
		if err := db.InsertWebhook(
			t.Context(),
			dbsqlc.InsertWebhookParams{
				WebhookID:    id,
				WorkspaceID:  workspace,
				Url:          "https://a.example",
				EventTypes:   []string{"*"},
				SecretSealed: []byte{},
			},
		); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.SetEndpointHealth(
		t.Context(),
		dbsqlc.SetEndpointHealthParams{WebhookID: prompt, IsHealthy: true},
	); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool.Exec(t.Context(), "update webhooks set due_at = now()"); err != nil {
		t.Fatal(err)
	}
	none, others := []uuid.UUID{}, []uuid.UUID{uuid.New()}
	for name, test := range map[string]struct {
		but  dbsqlc.DueWebhooksParams
		want int
	}{
		"all":                       {dbsqlc.DueWebhooksParams{ExcludeSuspectWorkspaces: none, ExcludeSuspectCreators: none}, 2},
		"but doubted ones":          {dbsqlc.DueWebhooksParams{ExcludeSuspect: true, ExcludeSuspectWorkspaces: none, ExcludeSuspectCreators: none}, 1},
		"but those of a workspace":  {dbsqlc.DueWebhooksParams{ExcludeSuspectWorkspaces: []uuid.UUID{workspace}, ExcludeSuspectCreators: none}, 1},
		"but those of its maker":    {dbsqlc.DueWebhooksParams{ExcludeSuspectWorkspaces: none, ExcludeSuspectCreators: []uuid.UUID{maker}}, 1},
		"but those of some others'": {dbsqlc.DueWebhooksParams{ExcludeSuspectWorkspaces: others, ExcludeSuspectCreators: others}, 2},
	} {
		test.but.MaxRows, test.but.ExcludeWorkspaces, test.but.ExcludeCreators = 10, none, none
		got, err := db.DueWebhooks(t.Context(), test.but)
		wrong := func(r dbsqlc.DueWebhooksRow) bool { return r.IsHealthy != (r.WebhookID == prompt) }
		if err != nil || len(got) != test.want || slices.ContainsFunc(got, wrong) ||
			!slices.ContainsFunc(got, func(r dbsqlc.DueWebhooksRow) bool { return r.IsHealthy }) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	rows, err := db.WebhookOwners(t.Context(), []uuid.UUID{prompt, doubted})
	if err != nil || len(rows) != 2 ||
		slices.ContainsFunc(
			rows,
			func(r dbsqlc.WebhookOwnersRow) bool { return r.IsHealthy != (r.WebhookID == prompt) },
		) {
		t.Errorf("%+v, %v", rows, err)
	}
}

// makers are those of rows, of one at each.
func makers[R any](rows []R, err error) func(of func(R) uuid.UUID) ([]uuid.UUID, error) {
	return func(of func(R) uuid.UUID) ([]uuid.UUID, error) {
		var all []uuid.UUID
		for _, r := range rows {
			all = append(all, of(r))
		}
		return all, err
	}
}
