package reconcile_test

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

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs/reconcile"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/accesscloud"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/adaptertest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

// alone is an undisputed lease.
type alone struct{}

func (alone) Check(context.Context, store.Tx) error { return nil }

// bed is a vendor account with a system, without an engine until start.
type bed struct {
	*testing.T
	db      *store.DB
	access  *access.Services
	account uuid.UUID
	start   func(accesscloud.Config) *reconcile.Reconciler
}

func newBed(t *testing.T) *bed { t.Helper(); return newBedWith(t, access.Options{}) }

func newBedWith(t *testing.T, o access.Options) *bed {
	t.Helper()
	b := &bed{T: t}
	var err error
	b.db, err = store.Open(t.Context(), storetest.New(t), 20)
	b.must(err)
	t.Cleanup(b.db.Close)
	keys, err := encryption.New(encryption.NewMaster())
	b.must(err)
	waker, err := worker.NewWaker(b.db)
	b.must(err)
	a := access.New(b.db, keys, waker, o)
	s := acs.New(b.db, acs.Services{
		Accounts: a.Accounts,
		Devices:  a.Devices,
		Events:   a.Events,
		Auth:     a.Auth,
		Phones:   a.Phones,
	}, waker)
	w, err := a.Accounts.CreateWorkspace(t.Context(), "A workspace", "A company", true)
	b.must(err)
	b.access = a
	b.account, err = a.Accounts.ConnectAccount(t.Context(), account.NewAccount{
		WorkspaceID:  w.ID,
		Adapter:      "vendor",
		DisplayName:  "A vendor",
		Capabilities: []string{account.AccessControl},
		Config:       []byte(`{}`),
	})
	b.must(err)
	b.must(s.RecordSystems(t.Context(), alone{}, b.account, []acs.FoundSystem{{Ref: "a", Name: "A", Online: true}}))
	b.start = func(c accesscloud.Config) *reconcile.Reconciler {
		d := reconcile.New(
			a,
			s,
			map[string]reconcile.Opener{
				"vendor": func(context.Context, account.Account) (adapter.AccessSystems, error) { return accesscloud.New(c), nil },
			},
			reconcile.Options{DownAfter: time.Nanosecond},
		)
		t.Cleanup(d.Close)
		engine, err := worker.NewEngine(waker, worker.Options{}, d.Lane())
		b.must(err)
		b.must(engine.Start(t.Context()))
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(time.Minute))
			defer cancel()
			b.must(engine.Stop(ctx))
		})
		return d
	}
	return b
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// The content of a large system keeps its memory until it is recorded, so other large responses
// wait.
func TestLargeContent_DelaysOtherLargeResponses(t *testing.T) {
	t.Parallel()
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
	b := newBed(t)
	tx, err := b.db.Pool.Begin(t.Context())
	b.must(err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	_, err = tx.Exec(t.Context(), "lock table acs_users in share mode")
	b.must(err)
	b.start(accesscloud.Config{BaseURL: vendor.URL})
	apptest.Until(t, "the content is about to be recorded", func() (waits bool) {
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())").
				Scan(&waits),
		)
		return waits && served.Load()
	})
	if !adaptertest.LargeResponseWaits(t) {
		t.Error("another response was read meanwhile")
	}
	b.must(tx.Rollback(t.Context()))
	apptest.Until(t, "another response is read afterwards", func() bool { return !adaptertest.LargeResponseWaits(t) })
}

// A read that failed for lack of memory is retried soon and does not count as a vendor failure.
func TestMemoryShortage_SystemIsReadAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(accesscloud.Config{BaseURL: "http://vendor.example", HTTP: adaptertest.Saturated()})
	var silent bool
	apptest.Until(t, "the look is postponed", func() (put bool) {
		b.must(
			b.db.Pool.QueryRow(t.Context(), "select error_message is not null, due_at between now() and now() + interval '5 s' from acs_systems").
				Scan(&silent, &put),
		)
		return put
	})
	if silent {
		t.Error("the shortage counts as a vendor failure")
	}
}
