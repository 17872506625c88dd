package app_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// otherSealers counts the secrets that are encrypted with another key than the current one.
func otherSealers(t *testing.T, db *store.DB) (left int64, current byte) {
	t.Helper()
	keys, err := db.ListDataKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if k.IsCurrent {
			current = byte(k.KeyID)
		}
	}
	for _, c := range store.SealedColumns() {
		key := current
		if c.Hashed() {
			key = byte(len(keys) - 1) // each rotation adds a data key and a generation of the hash key
		}
		n, err := db.CountSealedByOthers(t.Context(), c, key)
		if err != nil {
			t.Fatal(err)
		}
		left += n
	}
	return left, current
}

// The encryption can be rotated while two instances serve, and a stopped rotation can be resumed.
func TestRotateEncryption_WhileInstancesServe(t *testing.T) {
	t.Parallel()
	var dsn string
	one := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.RotationWait = time.Second }),
		func(c *app.Config) { dsn = c.DatabaseURL },
	)
	two := one.StartAnother(t)
	db, err := store.Open(t.Context(), dsn, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	device := one.Device(t, "august")
	type answer struct {
		Webhook api.Webhook `json:"webhook"`
	}
	var hook answer
	one.Post(t, "/webhooks/create", map[string]any{"url": "https://hooks.example/x"}, &hook)

	made := map[string]string{} // PIN by id
	create := func(s *apptest.Server, pin string) {
		var out struct {
			AccessCode struct {
				AccessCodeID string `json:"access_code_id"`
			} `json:"access_code"`
		}
		if status := s.Post(
			t,
			"/access_codes/create",
			map[string]any{"device_id": device, "code": pin},
			&out,
		); status != http.StatusOK {
			t.Errorf("create: %d", status)
		}
		made[out.AccessCode.AccessCodeID] = pin
	}
	for i := range 10 {
		create(one, fmt.Sprint(410000+i)) // longer than the PINs that are already on the lock
	}

	stopped, stop := context.WithCancel(t.Context())
	err = one.App.Access.ServerKeys.RotateEncryption(stopped, func(r keyrotation.Rotation) {
		if r.Column != "" {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped in the middle: %v", err)
	}
	left, started := otherSealers(t, db)
	if left == 0 || started == 0 {
		t.Fatalf("in the middle, %d are left, and the key is %d", left, started)
	}

	var resumed atomic.Bool
	rotated := make(chan error, 1)
	go func() {
		rotated <- two.App.Access.ServerKeys.RotateEncryption(t.Context(), func(r keyrotation.Rotation) { resumed.Store(resumed.Load() || r.Resumed) })
	}()
	var result error
	for i, done := 0, false; !done; i++ { // both continue
		if i < 100 { // the lock has no room for many more
			create([]*apptest.Server{one, two}[i%2], fmt.Sprint(500000+i))
		}
		select {
		case result = <-rotated:
			done = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	if result != nil || !resumed.Load() {
		t.Fatalf("the rotation: %v, resumed %t", result, resumed.Load())
	}
	left, current := otherSealers(t, db)
	if left != 0 || current != started {
		t.Errorf("%d are left, and the key is %d, but the rotation started with %d", left, current, started)
	}
	for _, s := range []*apptest.Server{one, two, one.StartAnother(t)} {
		var out struct {
			AccessCodes []struct {
				AccessCodeID string `json:"access_code_id"`
				Code         string `json:"code"`
			} `json:"access_codes"`
		}
		s.Post(t, "/access_codes/list", map[string]any{"device_id": device}, &out)
		if len(out.AccessCodes) != len(made) {
			t.Errorf("%d codes, want %d", len(out.AccessCodes), len(made))
		}
		for _, c := range out.AccessCodes {
			if c.Code != made[c.AccessCodeID] {
				t.Errorf("code %s has a wrong PIN", c.AccessCodeID)
			}
		}
		var got answer
		s.Post(t, "/webhooks/get", map[string]any{"webhook_id": hook.Webhook.WebhookID}, &got)
		if got.Webhook.Secret == "" || got.Webhook.Secret != hook.Webhook.Secret {
			t.Error("the webhook has another secret")
		}
		if status := s.Post(
			t,
			"/access_codes/create",
			map[string]any{"device_id": device, "code": "410005"},
			nil,
		); status != http.StatusConflict {
			t.Errorf("a PIN that is there already: %d", status)
		}
	}
	if err := one.App.Access.ServerKeys.RotateEncryption(t.Context(), func(keyrotation.Rotation) {}); err != nil {
		t.Fatal(err)
	}
	if left, again := otherSealers(t, db); left != 0 || again == current {
		t.Errorf("another rotation leaves %d and has the key %d", left, again)
	}
}

func TestRotateEncryption_OneAtATime(t *testing.T) {
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.RotationWait = time.Millisecond }),
	)
	tried := false
	err := s.App.Access.ServerKeys.RotateEncryption(t.Context(), func(keyrotation.Rotation) {
		if !tried {
			tried = true
			var refused *domain.Error
			if err := s.App.Access.ServerKeys.RotateEncryption(
				t.Context(),
				func(keyrotation.Rotation) {},
			); !errors.As(err, &refused) ||
				refused.Type != "rotation_under_way" {
				t.Errorf("a concurrent rotation: %v", err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A rotation does not know the secrets of a newer schema.
func TestRotateEncryption_NewerSchema(t *testing.T) {
	t.Parallel()
	s := newSafe(t, encryption.NewMaster())
	if _, err := s.db.Pool.Exec(
		t.Context(),
		"insert into goose_db_version (version_id, is_applied) values ($1, true)",
		store.NewestSchema()+1,
	); err != nil {
		t.Fatal(err)
	}
	var refused *domain.Error
	s.open(app.OpenAdmin, func(a *access.Services) error {
		if err := a.ServerKeys.RotateEncryption(
			t.Context(),
			func(keyrotation.Rotation) {},
		); !errors.As(err, &refused) ||
			refused.Type != "schema_is_newer" {
			t.Errorf("it is rotated: %v", err)
		}
		return nil
	}, s.master)
}

// A rotation can wait for other transactions for any time. The server does not end it as idle.
func TestRotateEncryption_MayTakeLong(t *testing.T) {
	t.Parallel()
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.RotationWait = 5 * time.Second }),
		func(c *app.Config) { c.DatabaseURL += "&idle_in_transaction_session_timeout=3000" },
	) // longer idle transactions are ended
	if err := s.App.Access.ServerKeys.RotateEncryption(t.Context(), func(keyrotation.Rotation) {}); err != nil {
		t.Fatal(err)
	}
}

// another returns a master key with another id than than: one in 256 keys has the same.
func another(than []byte) []byte {
	for {
		m := encryption.NewMaster()
		if _, err := encryption.New(than, m); err == nil {
			return m
		}
	}
}

// The master key can be changed as `keys rotate-encryption --help` describes.
func TestMasterKey_Change(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	first := encryption.NewMaster()
	latest := another(first)
	older, newer := base64.StdEncoding.EncodeToString(first), base64.StdEncoding.EncodeToString(latest)
	with := func(masters string, f func(*access.Services)) error {
		admin, err := app.OpenAdmin(
			t.Context(),
			app.Database{DatabaseURL: dsn, DataDir: t.TempDir(), MasterKey: masters},
			slog.New(slog.DiscardHandler),
		)
		if err != nil {
			return err
		}
		f(admin.Access)
		return admin.Close(t.Context())
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var p domain.Principal
	var hook webhook.Webhook
	must(with(older, func(a *access.Services) {
		w, err := a.Accounts.CreateWorkspace(t.Context(), "w", "", true)
		must(err)
		p = domain.Principal{WorkspaceID: w.ID}
		hook, err = a.Webhooks.CreateWebhook(t.Context(), p, "https://hooks.example/x", nil)
		must(err)
	}))
	for range 2 { // first without a data key, then with one
		must(
			with(
				newer+","+older,
				func(a *access.Services) {
					must(a.ServerKeys.RotateEncryption(t.Context(), func(keyrotation.Rotation) {}))
				},
			),
		)
		must(with(newer, func(a *access.Services) {
			got, err := a.Webhooks.GetWebhook(t.Context(), p, hook.ID.String())
			if err != nil || got.Secret != hook.Secret {
				t.Errorf("with the newer key alone: %v", err)
			}
		}))
		if err := with(
			older,
			func(*access.Services) {},
		); err == nil ||
			!strings.Contains(err.Error(), "is the master key the one this database was created with?") {
			t.Errorf("with the older key: %v", err)
		}
		latest = another(latest)
		older, newer = newer, base64.StdEncoding.EncodeToString(latest)
	}
}

// While only some servers have a newer master key, as during a rolling restart, every server can decrypt what any of
// them encrypts. This also works if an earlier version had no data key.
func TestMasterKey_RollingChange(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(context.Context, app.Database, *slog.Logger) (*app.Admin, error){
		"sealed by a data key":     app.OpenOrCreateAdmin,
		"sealed by the master key": app.OpenAdmin,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := encryption.NewMaster()
			older, newer := base64.StdEncoding.EncodeToString(old), base64.StdEncoding.EncodeToString(another(old))
			c := app.Database{DatabaseURL: storetest.New(t), DataDir: t.TempDir(), MaxConns: 2}
			start := func(how func(context.Context, app.Database, *slog.Logger) (*app.Admin, error), masters string) *access.Services {
				c.MasterKey = masters
				admin, err := how(t.Context(), c, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { admin.Close(context.WithoutCancel(t.Context())) })
				return admin.Access
			}
			servers := []*access.Services{start(first, older)}
			w, err := servers[0].Accounts.CreateWorkspace(t.Context(), "w", "", true)
			if err != nil {
				t.Fatal(err)
			}
			p, secrets := domain.Principal{WorkspaceID: w.ID}, map[string]string{}
			everybodySeals := func() {
				t.Helper()
				for i, s := range servers {
					hook, err := s.Webhooks.CreateWebhook(t.Context(), p, "https://hooks.example/x", nil)
					if err != nil {
						t.Fatalf("server %d: %v", i, err)
					}
					secrets[hook.ID.String()] = hook.Secret
				}
				for i, s := range servers {
					for id, secret := range secrets {
						if got, err := s.Webhooks.GetWebhook(t.Context(), p, id); err != nil || got.Secret != secret {
							t.Errorf("server %d of %d does not know a secret: %v", i, len(servers), err)
						}
					}
				}
			}
			everybodySeals()
			servers = append(servers, start(app.OpenOrCreateAdmin, newer+","+older))
			everybodySeals()
			servers = append(servers, start(app.OpenOrCreateAdmin, older)) // which has crashed
			everybodySeals()
			servers = []*access.Services{
				start(app.OpenOrCreateAdmin, newer+","+older),
				start(app.OpenOrCreateAdmin, newer+","+older),
			}
			everybodySeals()
			if err := servers[0].ServerKeys.RotateEncryption(t.Context(), func(keyrotation.Rotation) {}); err != nil {
				t.Fatal(err)
			}
			servers = append(servers, start(app.OpenOrCreateAdmin, newer))
			everybodySeals()
		})
	}
}

// Servers that start concurrently create one data key.
func TestDataKey_CreatedOnce(t *testing.T) {
	t.Parallel()
	c := app.Database{
		DatabaseURL: storetest.New(t),
		DataDir:     t.TempDir(),
		MasterKey:   base64.StdEncoding.EncodeToString(encryption.NewMaster()),
		MaxConns:    2,
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := app.Migrate(t.Context(), c, slog.New(slog.DiscardHandler)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	db, err := store.Open(t.Context(), c.DatabaseURL, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	keys, err := db.ListDataKeys(t.Context())
	if err != nil || len(keys) != 1 || !keys[0].IsCurrent || keys[0].ResealedAt == nil {
		t.Errorf("%d keys: %v", len(keys), err)
	}
	if left, _ := otherSealers(t, db); left != 0 {
		t.Errorf("another key has sealed %d", left)
	}
}
