package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Encryption inside a transaction works while all connections of the pool are in use.
func TestKeys_ReadWhileAllConnectionsAreHeld(t *testing.T) {
	t.Parallel()
	dsn := storetest.New(t)
	db, err := store.Open(t.Context(), dsn, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	master := encryption.NewMaster()
	here, elsewhere := must(encryption.New(master))(t), must(encryption.New(master))(t)
	for _, k := range []*encryption.Keys{here, elsewhere} {
		if err := keyrotation.FollowKeys(t.Context(), db, k, false); err != nil {
			t.Fatal(err)
		}
	}
	fresh := must(elsewhere.NewDataKey(nil))(t)
	if err := db.InsertDataKey(
		t.Context(),
		dbsqlc.InsertDataKeyParams{KeyID: int16(fresh.ID), Wrapped: fresh.Wrapped},
	); err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	sealed := elsewhere.Seal("p", []byte("x"))
	err = pgx.BeginFunc(t.Context(), db.Pool, func(pgx.Tx) error {
		if plain, err := here.Open("p", sealed); err != nil || string(plain) != "x" {
			t.Errorf("with a key that is not known yet: %q, %v", plain, err)
		}
		if by := encryption.SealedBy(here.Seal("p", []byte("y"))); by != fresh.ID {
			t.Errorf("sealed by %d, want %d", by, fresh.ID)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// A transaction may write back a secret that it has read with the old key.
func TestRotateEncryption_WaitsForTransactions(t *testing.T) {
	t.Parallel()
	var dsn string
	s := apptest.Start(
		t,
		apptest.WithProfiles("august"),
		apptest.WithAccess(func(o *access.Options) { o.RotationWait = time.Millisecond }),
		func(c *app.Config) {
			c.DatabaseURL += "&lock_timeout=0" // a statement that waits at the gate must not be retried
			dsn = c.DatabaseURL
		},
	)
	db := must(store.Open(t.Context(), dsn, 2))(t)
	t.Cleanup(db.Close)
	gate := s.Gate(t, "before insert", "events", "new.event_type = 'access_code.created'")
	var made api.AccessCodeCreatedResponse
	created := make(chan int, 1)
	go func() { // no lease expiry ends the work of a request
		created <- s.Post(t, "/access_codes/create", map[string]any{"device_id": s.Device(t, "august")}, &made)
	}()
	gate.Await(1, "insert into events")
	rotated, waits := make(chan error, 1), make(chan struct{}, 100)
	go func() {
		rotated <- s.App.Access.ServerKeys.RotateEncryption(t.Context(), func(r keyrotation.Rotation) {
			if r.Waiting > 0 {
				waits <- struct{}{}
			}
		})
	}()
	select {
	case <-waits:
	case err := <-rotated:
		t.Errorf("it does not wait: %v", err)
		rotated <- err
	}
	gate.Open()
	if err := <-rotated; err != nil {
		t.Fatal(err)
	}
	if status := <-created; status != http.StatusOK {
		t.Fatal(status)
	}
	apptest.Until(t, "the code is set", func() bool {
		var now api.AccessCodeResponse
		s.Post(t, "/access_codes/get", map[string]any{"access_code_id": made.AccessCode.AccessCodeID}, &now)
		return now.AccessCode.Status == "set"
	})
	if left, _ := otherSealers(t, db); left != 0 {
		t.Errorf("%d are sealed with another key", left)
	}
}
