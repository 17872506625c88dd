package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
)

// tokenVendor issues tokens. A refresh token works once, and the one before again if the vendor is lenient.
type tokenVendor struct {
	lenient bool

	mu            sync.Mutex
	issued        int
	current, last string
}

func (v *tokenVendor) issue() adapter.Tokens {
	v.issued++
	v.last, v.current = v.current, fmt.Sprintf("refresh-%d", v.issued)
	return adapter.Tokens{Access: fmt.Sprintf("access-%d", v.issued), Refresh: v.current}
}

func (v *tokenVendor) refresh(old adapter.Tokens) (adapter.Tokens, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if old.Refresh != v.current && (!v.lenient || old.Refresh != v.last) {
		return adapter.Tokens{}, adapter.Errorf(adapter.AuthRevoked, "the refresh token was used before")
	}
	return v.issue(), nil
}

func (v *tokenVendor) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.issued
}

// tokenBed has three instances on one database, and an account with tokens.
type tokenBed struct {
	*testing.T
	vendor  *tokenVendor
	dbs     []*store.DB
	secrets []*accountSecrets
	first   adapter.Tokens
}

func newTokenBed(t *testing.T, vendor *tokenVendor) *tokenBed {
	t.Helper()
	b := &tokenBed{T: t, vendor: vendor, first: vendor.issue()}
	dsn := storetest.New(t)
	keys, err := encryption.New(encryption.NewMaster())
	b.must(err)
	var id uuid.UUID
	for n := range 3 {
		db, err := store.Open(t.Context(), dsn, 8)
		b.must(err)
		t.Cleanup(db.Close)
		if n == 0 {
			b.must(keyrotation.FollowKeys(t.Context(), db, keys, true))
		}
		waker, err := worker.NewWaker(db)
		b.must(err)
		accounts := access.New(db, keys, waker, access.Options{}).Accounts
		if n == 0 {
			w, err := accounts.CreateWorkspace(t.Context(), "w", "c", false)
			b.must(err)
			credentials, err := json.Marshal(b.first)
			b.must(err)
			id, err = accounts.ConnectAccount(t.Context(), account.NewAccount{
				WorkspaceID: w.ID,
				Adapter:     "vendor",
				DisplayName: "v",
				Config:      json.RawMessage("{}"),
				Secrets:     secretsOf(adapter.Checked{Credentials: credentials}),
			})
			b.must(err)
		}
		b.dbs = append(b.dbs, db)
		b.secrets = append(b.secrets, &accountSecrets{
			accounts: accounts,
			account:  id,
			adapter:  "vendor",
			renewals: newRenewals(),
		})
	}
	return b
}

func (b *tokenBed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// source returns the tokens of an instance that has read the first ones. met, if not nil, runs after the vendor's answer.
func (b *tokenBed) source(instance int, met func()) *adapter.TokenSource {
	b.Helper()
	s := &adapter.TokenSource{
		Secrets: b.secrets[instance],
		Refresh: func(_ context.Context, old adapter.Tokens) (adapter.Tokens, error) {
			tokens, err := b.vendor.refresh(old)
			if met != nil {
				met()
			}
			return tokens, err
		},
	}
	if _, err := s.Token(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s
}

// Of all callers on three instances, one renews a refused token.
func TestRotate_OneOfThreeInstancesRenews(t *testing.T) {
	t.Parallel()
	b := newTokenBed(t, &tokenVendor{})
	var sources []*adapter.TokenSource
	for n := range 3 {
		sources = append(sources, b.source(n, nil))
	}
	var all sync.WaitGroup
	for n := range 24 {
		all.Go(func() {
			token, err := sources[n%3].Renew(t.Context(), b.first.Access)
			if err != nil || token != "access-2" {
				t.Errorf("%q, %v", token, err)
			}
		})
	}
	all.Wait()
	if n := b.vendor.count(); n != 2 {
		t.Errorf("the vendor issued %d tokens, want the first and one more", n)
	}
	if token, err := b.source(1, nil).Token(t.Context()); err != nil || token != "access-2" {
		t.Errorf("stored is %q, %v", token, err)
	}
}

// An instance that is killed between the vendor's answer and the commit loses the new token. The next one tries the old
// one again. If the vendor refuses it, the error asks for a new login.
func TestRotate_KilledBeforeCommit(t *testing.T) {
	t.Parallel()
	for name, lenient := range map[string]bool{"lenient": true, "strict": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTokenBed(t, &tokenVendor{lenient: lenient})
			dead := b.source(0, func() { panic("killed") })
			func() {
				defer func() { recover() }()
				_, _ = dead.Renew(t.Context(), b.first.Access)
			}()
			token, err := b.source(1, nil).Renew(t.Context(), b.first.Access)
			e := adapter.AsError(err)
			switch {
			case lenient && (err != nil || token != "access-3"):
				t.Errorf("%q, %v", token, err)
			case !lenient && (e == nil || e.Class != adapter.AuthRevoked || !strings.Contains(e.Message, "log in again") ||
				!strings.Contains(e.Message, "interrupted")):
				t.Errorf("%q, %v", token, err)
			}
		})
	}
}

// When the database ends the transaction after the vendor's answer, the new token is stored nevertheless.
func TestRotate_ConnectionLostBeforeCommit(t *testing.T) {
	t.Parallel()
	b := newTokenBed(t, &tokenVendor{})
	s := b.source(0, func() {
		_, err := b.dbs[1].Pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and state = 'idle in transaction'`)
		if err != nil {
			t.Error(err)
		}
	})
	if token, err := s.Renew(t.Context(), b.first.Access); err != nil || token != "access-2" {
		t.Errorf("%q, %v", token, err)
	}
	if token, err := b.source(2, nil).Token(t.Context()); err != nil || token != "access-2" {
		t.Errorf("another instance reads %q, %v", token, err)
	}
	if n := b.vendor.count(); n != 2 {
		t.Errorf("the vendor issued %d tokens", n)
	}
}

// A clock that jumps ahead causes one renewal. After it jumps back, the vendor's refusal causes the next one.
func TestTokenSource_ClockJumps(t *testing.T) {
	t.Parallel()
	b := newTokenBed(t, &tokenVendor{})
	now := time.Now()
	s := b.source(0, nil)
	s.Now = func() time.Time { return now }
	refresh := s.Refresh
	s.Refresh = func(ctx context.Context, old adapter.Tokens) (adapter.Tokens, error) {
		tokens, err := refresh(ctx, old)
		tokens.ExpiresAt = now.Add(time.Hour)
		return tokens, err
	}
	for _, step := range []struct {
		name  string
		jump  time.Duration
		renew bool
		want  string
	}{
		{name: "refused", renew: true, want: "access-2"},
		{name: "valid", want: "access-2"},
		{name: "a year ahead", jump: 365 * 24 * time.Hour, want: "access-3"},
		{name: "still ahead", want: "access-3"},
		{name: "back", jump: -365 * 24 * time.Hour, want: "access-3"},
		{name: "refused after the jump", renew: true, want: "access-4"},
		{name: "almost expired", jump: time.Hour - time.Second, want: "access-5"},
	} {
		now = now.Add(step.jump)
		token, err := s.Token(t.Context())
		if step.renew {
			token, err = s.Renew(t.Context(), token)
		}
		if err != nil || token != step.want {
			t.Errorf("%s: %q, %v, want %q", step.name, token, err, step.want)
		}
	}
}

// A vendor that does not respond holds its own slots, and no others: accounts of other vendors renew their tokens.
func TestRotate_SlowVendorStopsNoOther(t *testing.T) {
	t.Parallel()
	b := newTokenBed(t, &tokenVendor{})
	s := b.secrets[0]
	owner, err := s.accounts.GetAccount(t.Context(), s.account)
	b.must(err)
	entered, answered := make(chan struct{}, 100), make(chan struct{})
	var all sync.WaitGroup
	for n := range maxRenewals + 2 {
		id, err := s.accounts.ConnectAccount(t.Context(), account.NewAccount{
			WorkspaceID: owner.WorkspaceID,
			Adapter:     "slow",
			DisplayName: fmt.Sprint("slow ", n),
			Config:      json.RawMessage("{}"),
			Secrets:     map[string][]byte{adapter.CredentialsSecret: []byte("old")},
		})
		b.must(err)
		slow := &accountSecrets{accounts: s.accounts, account: id, adapter: "slow", renewals: s.renewals}
		all.Go(func() {
			value, err := slow.Rotate(t.Context(), adapter.CredentialsSecret, []byte("old"),
				func(context.Context, []byte) ([]byte, error) {
					entered <- struct{}{}
					<-answered
					return []byte("new"), nil
				})
			if err != nil || string(value) != "new" {
				t.Errorf("a slow renewal: %q, %v", value, err)
			}
		})
	}
	for range maxRenewals {
		<-entered
	}
	if token, err := b.source(0, nil).Renew(t.Context(), b.first.Access); err != nil || token != "access-2" {
		t.Errorf("while another vendor is slow: %q, %v", token, err)
	}
	if n := len(entered); n != 0 {
		t.Errorf("%d renewals of the slow vendor are beyond its slots", n)
	}
	close(answered)
	all.Wait()
}

// A disconnected account has no secrets, and none can be stored.
func TestSecrets_DisconnectedAccount(t *testing.T) {
	t.Parallel()
	b := newTokenBed(t, &tokenVendor{})
	s := b.secrets[0]
	b.must(s.Store(t.Context(), adapter.CursorSecret, []byte("7")))
	if value, err := b.secrets[1].Load(t.Context(), adapter.CursorSecret); err != nil || string(value) != "7" {
		t.Errorf("%q, %v", value, err)
	}
	b.must(s.Store(t.Context(), adapter.CursorSecret, nil))
	if value, err := s.Load(t.Context(), adapter.CursorSecret); err != nil || value != nil {
		t.Errorf("%q, %v", value, err)
	}
	b.must(s.accounts.DisconnectAccount(t.Context(), s.account))
	if value, err := s.Load(t.Context(), adapter.CredentialsSecret); err != nil || value != nil {
		t.Errorf("%q, %v", value, err)
	}
	want := adapter.GatewayDown
	if err := s.Store(t.Context(), adapter.CursorSecret, []byte("8")); adapter.ClassOf(err) != want {
		t.Error(err)
	}
	_, err := s.Rotate(t.Context(), adapter.CredentialsSecret, nil, func(context.Context, []byte) ([]byte, error) {
		return nil, errors.New("called")
	})
	if adapter.ClassOf(err) != want {
		t.Error(err)
	}
}
