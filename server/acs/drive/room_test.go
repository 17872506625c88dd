package drive_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs/drive"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/seal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/work"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

// alone is nobody's lease.
type alone struct{}

func (alone) Check(context.Context, store.Tx) error { return nil }

// All that is on a large system, while it waits for the database, has other answers of its size wait: all of them would be
// in memory at once.
func TestLargeAnswersWaitUntilASystemIsWrittenDown(t *testing.T) {
	t.Parallel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var served atomic.Bool
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		users := make([]string, 2500)
		for i := range users {
			users[i] = fmt.Sprintf(`{"user_id":"u%d","full_name":%q}`, i, strings.Repeat("n", 500))
		}
		served.Store(true)
		io.WriteString(w, `{"groups":[],"entrances":[],"users":[`+strings.Join(users, ",")+`]}`)
	}))
	t.Cleanup(vendor.Close)
	db, err := store.Open(t.Context(), storetest.New(t), 20)
	must(err)
	t.Cleanup(db.Close)
	keys, err := seal.New(seal.NewMaster())
	must(err)
	waker, err := work.NewWaker(db)
	must(err)
	a := access.New(db, keys, waker, access.Options{})
	s := acs.New(db, a, waker)
	w, err := a.CreateWorkspace(t.Context(), "A workspace", "A company", true)
	must(err)
	account, err := a.ConnectAccount(t.Context(), access.NewAccount{WorkspaceID: w.ID, Adapter: "vendor", DisplayName: "A vendor", Takes: []string{access.AccessControl}, Config: []byte(`{}`)})
	must(err)
	must(s.RecordSystems(t.Context(), alone{}, account, []acs.FoundSystem{{Ref: "a", Name: "A", Online: true}}))

	tx, err := db.Pool.Begin(t.Context())
	must(err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	_, err = tx.Exec(t.Context(), "lock table acs_users in share mode")
	must(err)
	d := drive.New(a, s, map[string]drive.Opener{"vendor": func(context.Context, access.Account) (adapter.AccessSystems, error) {
		return accesscloud.New(accesscloud.Config{BaseURL: vendor.URL}), nil
	}}, drive.Options{})
	t.Cleanup(d.Close)
	engine, err := work.NewEngine(waker, work.Options{}, d.Lane())
	must(err)
	must(engine.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		must(engine.Stop(ctx))
	})
	apptest.Until(t, "it is about to be written down", func() (waits bool) {
		must(db.Pool.QueryRow(t.Context(), "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())").Scan(&waits))
		return waits && served.Load()
	})
	if !adaptertest.LargeAnswerWaits(t) {
		t.Error("another is read meanwhile")
	}
	must(tx.Rollback(t.Context()))
	apptest.Until(t, "another is read once it is", func() bool { return !adaptertest.LargeAnswerWaits(t) })
}
