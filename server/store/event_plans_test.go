package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// What has happened to one subject is found among everything that has happened in the workspace by an index of its own.
func TestEventsOfASubjectAreFoundInItsIndex(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	ctx := t.Context()
	partition(t, db, 300*store.Day, 0)
	workspace := uuid.New()
	if err := db.InsertWorkspace(ctx, store.InsertWorkspaceParams{WorkspaceID: workspace, Name: "w"}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool.Exec(ctx, `
		insert into events (event_id, workspace_id, event_type, payload, created_at)
			select `+madeAt("now() - i * interval '2 h'")+`, workspace_id, 'x', case when i % 10 > 0 then '{}' else jsonb_build_object('connect_webview_id', i::text, 'customer_key', i::text,
				'user_identity_id', i::text, 'acs_system_id', i::text, 'acs_user_id', i::text, 'acs_access_group_id', i::text, 'acs_entrance_id', i::text) end,
				now() - i * interval '2 h' from workspaces, generate_series(1, 3000) i;
		analyze events`); err != nil {
		t.Fatal(err)
	}
	one := new("10")
	for index, arg := range map[string]store.ListEventsParams{
		"events_of_webviews":          {ConnectWebviewID: one},
		"events_of_customers":         {CustomerKey: one},
		"events_of_user_identities":   {UserIdentityID: one},
		"events_of_acs_systems":       {AcsSystemIds: []string{"10", "20"}},
		"events_of_acs_users":         {AcsUserID: one},
		"events_of_acs_access_groups": {AcsAccessGroupID: one},
		"events_of_acs_entrances":     {AcsEntranceID: one},
	} {
		arg.WorkspaceID, arg.Until, arg.UntilID, arg.MaxRows = workspace, time.Now().Add(time.Hour), uuid.Max, 100
		plan := explain(t, db, true, func(q *store.Queries) error {
			_, err := q.ListEvents(ctx, arg)
			return err
		})
		if !strings.Contains(plan, "on "+index+" ") && !strings.Contains(plan, "using "+index+" ") {
			t.Errorf("not found in %s:\n%s", index, plan)
		}
	}
}
