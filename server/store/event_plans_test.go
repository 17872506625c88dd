package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// What has happened to one subject is found among everything that has happened in the workspace by an index of its own.
func TestEventsOfASubjectAreFoundInItsIndex(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	ctx := t.Context()
	partition(t, db, 300*store.Day, 0)
	workspace := uuid.New()
	if err := db.InsertWorkspace(ctx, dbsqlc.InsertWorkspaceParams{WorkspaceID: workspace, Name: "w"}); err != nil {
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
	for index, arg := range map[string]dbsqlc.ListEventsParams{
		"events_of_webviews":          {ConnectWebviewID: one},
		"events_of_customers":         {CustomerKey: one},
		"events_of_user_identities":   {UserIdentityID: one},
		"events_of_acs_systems":       {AcsSystemIds: []string{"10", "20"}},
		"events_of_acs_users":         {AcsUserID: one},
		"events_of_acs_access_groups": {AcsAccessGroupID: one},
		"events_of_acs_entrances":     {AcsEntranceID: one},
	} {
		arg.WorkspaceID, arg.Until, arg.UntilID, arg.MaxRows = workspace, time.Now().Add(time.Hour), uuid.Max, 100
		plan := explain(t, db, true, func(q *dbsqlc.Queries) error {
			_, err := q.ListEvents(ctx, arg)
			return err
		})
		if !strings.Contains(plan, "on "+index+" ") && !strings.Contains(plan, "using "+index+" ") {
			t.Errorf("not found in %s:\n%s", index, plan)
		}
	}
}

// A list without an end does not look where nothing can be yet: in the partitions to come, and among what has none.
func TestEventsAreNotLookedForInTheFuture(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.New(t))
	ctx := t.Context()
	now := time.Now()
	if _, _, err := db.DropPartitions(ctx, now.Add(1000*store.Day)); err != nil {
		t.Fatal(err)
	}
	for at := -5; at < 5; at++ {
		if _, err := db.MakePartitions(ctx, now.Add(time.Duration(at)*store.Day), store.Day); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := db.Partitions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, p := range parts {
		if p.To.After(now.Add(-store.Day-time.Hour)) && !p.From.After(now.Add(store.Day)) {
			want++
		}
	}
	arg := dbsqlc.ListEventsParams{
		WorkspaceID: uuid.New(),
		Since:       now.Add(-time.Hour),
		Until:       time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
		MaxRows:     100,
	}
	arg.SinceID, arg.UntilID = store.EventIDs(arg.Since, arg.Until)
	plan := explain(t, db, true, func(q *dbsqlc.Queries) error {
		_, err := q.ListEvents(ctx, arg)
		return err
	})
	if n := strings.Count(plan, " on events "); want == 0 || want == len(parts) || n != want {
		t.Errorf("looks into %d partitions, not %d, of %v and the rest:\n%s", n, want, parts, plan)
	}
}
