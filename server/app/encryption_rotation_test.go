package app_test

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// safe is a database with a secret that is encrypted with the master key itself.
type safe struct {
	*testing.T
	dsn  string
	db   *store.DB
	p    domain.Principal
	hook webhook.Webhook

	master []byte
}

func newSafe(t *testing.T, master []byte) *safe {
	t.Helper()
	s := &safe{T: t, dsn: storetest.New(t), master: master}
	db, err := store.Open(t.Context(), s.dsn, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	s.db = db
	s.open(app.OpenAdmin, func(a *access.Services) error {
		w, err := a.Accounts.CreateWorkspace(t.Context(), "w", "", true)
		if err != nil {
			return err
		}
		s.p = domain.Principal{WorkspaceID: w.ID}
		s.hook, err = a.Webhooks.CreateWebhook(t.Context(), s.p, "https://hooks.example/x", nil)
		return err
	}, master)
	return s
}

func (s *safe) open(
	how func(context.Context, app.Database, *slog.Logger) (*app.Admin, error),
	f func(*access.Services) error,
	masters ...[]byte,
) {
	s.Helper()
	c := app.Database{DatabaseURL: s.dsn, DataDir: s.TempDir()}
	for _, m := range masters {
		c.MasterKey += base64.StdEncoding.EncodeToString(m) + ","
	}
	admin, err := how(s.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		s.Fatal(err)
	}
	if err := errors.Join(f(admin.Access), admin.Close(s.Context())); err != nil {
		s.Fatal(err)
	}
}

// serve creates the first data key, as a server does at its start.
func (s *safe) serve(masters ...[]byte) {
	s.Helper()
	s.open(app.OpenOrCreateAdmin, func(*access.Services) error { return nil }, masters...)
}

// rotate rotates the encryption. It fails unless all secrets have one key afterwards, which it returns.
func (s *safe) rotate(masters ...[]byte) (resumed bool, current byte) {
	s.Helper()
	s.open(app.OpenAdmin, func(a *access.Services) error {
		if err := a.ServerKeys.RotateEncryption(
			s.Context(),
			func(r keyrotation.Rotation) { resumed = resumed || r.Resumed },
		); err != nil {
			return err
		}
		got, err := a.Webhooks.GetWebhook(s.Context(), s.p, s.hook.ID.String())
		if err == nil && got.Secret != s.hook.Secret {
			s.Error("the webhook has another secret")
		}
		return err
	}, masters...)
	left, current := otherSealers(s.T, s.db)
	if left != 0 {
		s.Errorf("another key has sealed %d", left)
	}
	return resumed, current
}

// The first data key is known to holders of the master key and an older dump. The first rotation creates a new one.
func TestRotateEncryption_FirstCreatesNewKey(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"": "select", "the first key of earlier versions": "update data_keys set resealed_at = null",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := encryption.NewMaster()
			s := newSafe(t, master)
			s.serve(master)
			_, first := otherSealers(t, s.db)
			if _, err := s.db.Pool.Exec(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			if resumed, current := s.rotate(master); resumed || current == first {
				t.Errorf("the key was %d and is %d, resumed %t", first, current, resumed)
			}
		})
	}
}

// The key of a stopped rotation is known to holders of the earlier master key and a dump. After a change of the master
// key, the rotation starts over with another key.
func TestRotateEncryption_StartsOverAfterMasterKeyChange(t *testing.T) {
	t.Parallel()
	older := encryption.NewMaster()
	newer := another(older)
	s := newSafe(t, older)
	s.serve(older)
	s.open(app.OpenAdmin, func(a *access.Services) error {
		ctx, stop := context.WithCancel(t.Context())
		if err := a.ServerKeys.RotateEncryption(
			ctx,
			func(keyrotation.Rotation) { stop() },
		); !errors.Is(
			err,
			context.Canceled,
		) {
			t.Errorf("stopped: %v", err)
		}
		return nil
	}, older)
	left, begun := otherSealers(t, s.db)
	if left == 0 {
		t.Fatal("the stopped rotation has left nothing")
	}
	resumed, current := s.rotate(newer, older)
	if resumed || current == begun {
		t.Errorf("the key was %d and is %d, resumed %t", begun, current, resumed)
	}
	s.serve(newer)
}
