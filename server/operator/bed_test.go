package operator_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

const password = "correct horse battery"

var client = operator.Client{Agent: "Firefox", Address: "192.0.2.1"}

// bed is a Service on a database of its own, with a clock that tests move.
type bed struct {
	*testing.T
	*operator.Service
	db   *store.DB
	keys *encryption.Keys
	mu   sync.Mutex
	now  time.Time
	log  bytes.Buffer
}

func newBed(t *testing.T, opt operator.Options) *bed {
	t.Helper()
	db, err := store.Open(t.Context(), storetest.New(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	master := make([]byte, encryption.KeySize)
	rand.Read(master)
	keys, err := encryption.New(master)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, db: db, keys: keys, now: time.Now().Truncate(time.Microsecond)}
	opt.Now, opt.Log = b.clock, slog.New(slog.NewTextHandler(&b.log, nil))
	b.Service = operator.New(db, keys, opt)
	return b
}

func (b *bed) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bed) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func roles(r domain.Role) map[uuid.UUID]domain.Role { return map[uuid.UUID]domain.Role{uuid.Nil: r} }

// create creates an operator with the password.
func (b *bed) create(email string, r domain.Role) operator.Operator {
	b.Helper()
	o, _, err := b.CreateOperator(
		b.Context(),
		operator.NewOperator{Email: email, Roles: roles(r), Password: password},
	)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// signIn signs an operator in with the password.
func (b *bed) signIn(email string) (token string, s operator.Session) {
	b.Helper()
	token, pending, err := b.SignIn(b.Context(), email, password, client)
	if err != nil || pending != "" {
		b.Fatalf("sign in: %v %q", err, pending)
	}
	return token, b.session(token)
}

func (b *bed) session(token string) operator.Session {
	b.Helper()
	s, err := b.Session(b.Context(), token)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// write writes to the database, as a thief of its password can.
func (b *bed) write(sql string, args ...any) {
	b.Helper()
	done, err := b.db.Pool.Exec(b.Context(), sql, args...)
	if err != nil {
		b.Fatal(err)
	}
	if done.RowsAffected() == 0 {
		b.Fatalf("%s has written nothing", sql)
	}
}

// fails checks the type of an error.
func fails(t *testing.T, what string, err error, want string) {
	t.Helper()
	if e, ok := domain.AsError(err); !ok || e.Type != want {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func (b *bed) count(query string) (n int) {
	b.Helper()
	if err := b.db.Pool.QueryRow(context.WithoutCancel(b.Context()), query).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}
