package auth_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, store.Migrate, store.MigrationsVersion()) }

// question is a query with its arguments.
type question struct {
	sql  string
	args []any
}

// overheard is a database that records its queries.
type overheard struct {
	dbsqlc.DBTX
	mu    sync.Mutex
	asked []question
}

func (o *overheard) hear(sql string, args []any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, question{sql, args})
}

func (o *overheard) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	o.hear(sql, args)
	return o.DBTX.Exec(ctx, sql, args...)
}

func (o *overheard) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	o.hear(sql, args)
	return o.DBTX.Query(ctx, sql, args...)
}

func (o *overheard) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	o.hear(sql, args)
	return o.DBTX.QueryRow(ctx, sql, args...)
}

// keyring is a workspace with a valid and a revoked credential of each kind.
type keyring struct {
	*access.Services
	db            *store.DB
	heard         *overheard
	workspace     uuid.UUID
	good, revoked map[string]string // by kind
}

func newKeyring(t testing.TB) *keyring {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := store.Open(t.Context(), storetest.New(t), 4)
	must(err)
	t.Cleanup(db.Close)
	keys, err := encryption.New(encryption.NewMaster())
	must(err)
	must(keyrotation.FollowKeys(t.Context(), db, keys, true))
	k := &keyring{
		db:      db,
		heard:   &overheard{DBTX: db.Pool},
		good:    map[string]string{},
		revoked: map[string]string{},
	}
	db.Queries = dbsqlc.New(k.heard)
	k.Services = access.New(db, keys, nil, access.Options{})
	w, err := k.Accounts.CreateWorkspace(t.Context(), "Keys", "", true)
	must(err)
	k.workspace = w.ID
	for _, kind := range []domain.CredentialKind{domain.APIKey, domain.PAT, domain.ConsoleSession, domain.PublishableKey} {
		for _, tokens := range []map[string]string{k.good, k.revoked} {
			token, c, err := k.Auth.IssueCredential(
				t.Context(),
				auth.NewCredential{Kind: kind, WorkspaceIDs: []uuid.UUID{w.ID}},
			)
			must(err)
			tokens[string(kind)] = token
			if _, revoked := k.revoked[string(kind)]; revoked {
				must(k.Auth.RevokeCredential(t.Context(), c.ID))
			}
		}
	}
	for _, tokens := range []map[string]string{k.good, k.revoked} {
		c, err := k.Auth.CreateClientSession(
			t.Context(),
			domain.Principal{WorkspaceID: w.ID},
			auth.NewClientSession{},
			auth.RefuseIfTaken,
		)
		must(err)
		tokens[string(domain.EndUser)] = c.Token
		if _, revoked := k.revoked[string(domain.EndUser)]; revoked {
			_, err := db.RevokeClientSession(
				t.Context(),
				dbsqlc.RevokeClientSessionParams{WorkspaceID: w.ID, ClientSessionID: c.ID},
			)
			must(err)
		}
	}
	return k
}

// A negative lifetime is rejected. It must not mean that the credential never expires.
func TestIssueCredential_NegativeLifetime(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	for _, kind := range []domain.CredentialKind{domain.APIKey, domain.PAT, domain.ConsoleSession, domain.PublishableKey} {
		_, c, err := k.Auth.IssueCredential(
			t.Context(),
			auth.NewCredential{Kind: kind, WorkspaceIDs: []uuid.UUID{k.workspace}, Lifetime: -1},
		)
		if e, ok := errors.AsType[*domain.Error](err); !ok || e.Kind != domain.Invalid {
			t.Errorf("%s: %v, expires %v", kind, err, c.ExpiresAt)
		}
	}
}

// wrong returns invalid tokens by kind of error. The prefix of a token shows its kind and is not secret.
func wrong(good, revoked string) map[string]string {
	other := func(i int) string {
		b := []byte(good)
		if b[i]++; b[i] > 'z' || b[i] == ':' || b[i] == '[' {
			b[i] = '2'
		}
		return string(b)
	}
	secret := strings.LastIndexByte(good, '.') + 1 // the signature of a console session, which may contain a _
	if secret == 0 {
		secret = strings.LastIndexByte(good, '_') + 1
	}
	nothing := good[:secret] + strings.Repeat("2", len(good)-secret)
	return map[string]string{
		"wrong first byte": other(secret),
		"wrong last byte":  other(len(good) - 2),
		"entirely wrong":   nothing,
		"too short":        good[:len(good)-1],
		"half":             good[:secret+(len(good)-secret)/2],
		"too long":         good + "2",
		"far too long":     good + strings.Repeat("2", 4000),
		"revoked":          revoked,
	}
}

// Every invalid token takes the same path: it is hashed as a whole, and one query looks up the hash. Nothing compares
// parts of the token, so timing reveals nothing. Console sessions are signed, and forged ones are rejected without a
// query.
func TestTokensAreLookedUpByHash(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	if _, err := k.Auth.Authenticate(
		t.Context(),
		k.good["console_session"],
		"",
	); err != nil { // reads the signing key once
		t.Fatal(err)
	}
	ask := func(token string) ([]question, error) {
		k.heard.asked = nil
		_, err := k.Auth.Authenticate(t.Context(), token, "")
		return k.heard.asked, err
	}
	for kind, good := range k.good {
		first, err := ask(good)
		if err != nil || len(first) > 2 {
			t.Fatalf("the first use of a valid %s: %v, %d queries", kind, err, len(first))
		}
		asked, err := ask(good) // its last use is recorded now and then
		if err != nil || len(asked) != 1 {
			t.Fatalf("a valid %s: %v, %d queries", kind, err, len(asked))
		}
		for name, token := range wrong(good, k.revoked[kind]) {
			got, err := ask(token)
			var refused *domain.Error
			if !errors.As(err, &refused) || refused.Kind != domain.Unauthorized {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
			if kind == "console_session" && name != "revoked" {
				if len(got) != 0 {
					t.Errorf("a forged %s, %s: queries %v", kind, name, got)
				}
				continue
			}
			hash := sha256.Sum256([]byte(token))
			if len(got) != 1 || got[0].sql != asked[0].sql || len(got[0].args) != len(asked[0].args) {
				t.Errorf("%s, %s: queries %v, want those of the valid one %v", kind, name, got, asked)
				continue
			}
			hashes := 0
			for _, arg := range got[0].args {
				if raw, is := arg.([]byte); is && bytes.Equal(raw, hash[:]) {
					hashes++
				} else if strings.Contains(fmt.Sprint(arg), token[:13]) {
					t.Errorf("%s, %s: a query contains a part of it", kind, name)
				}
			}
			if hashes != 1 {
				t.Errorf("%s, %s: the query does not contain its hash: %v", kind, name, got[0].args)
			}
		}
	}
}

// The database stores no tokens in plain text, except for publishable keys, which are public. Those of client
// sessions are sealed next to their hash.
func TestTokensAreNotStored(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	for kind, token := range k.good {
		var known int
		err := k.db.Pool.QueryRow(t.Context(), `select (select count(*) from credentials c where c::text like '%' || $1 || '%')
			+ (select count(*) from client_sessions s where s::text like '%' || $1 || '%')`, token[:len(token)-4]).
			Scan(&known)
		if err != nil {
			t.Fatal(err)
		}
		if public := kind == "publishable_key"; (known > 0) != public {
			t.Errorf("%d rows contain the token of a %s", known, kind)
		}
	}
}

// BenchmarkWrongKeys measures how long the rejection of a token takes, by kind of error. It alternates between all
// kinds so that other load on the machine affects all of them. The metrics are ratios of medians to that of an
// entirely wrong token.
func BenchmarkWrongKeys(b *testing.B) {
	k := newKeyring(b)
	for _, kind := range slices.Sorted(maps.Keys(k.good)) {
		b.Run(kind, func(b *testing.B) {
			tokens := wrong(k.good[kind], k.revoked[kind])
			names := slices.Sorted(maps.Keys(tokens))
			took := map[string][]time.Duration{}
			for b.Loop() {
				for _, name := range names {
					start := time.Now()
					_, _ = k.Auth.Authenticate(b.Context(), tokens[name], "")
					took[name] = append(took[name], time.Since(start))
				}
				k.heard.asked = nil
			}
			median := func(name string) float64 {
				slices.Sort(took[name])
				return float64(took[name][len(took[name])/2])
			}
			for _, name := range names {
				b.ReportMetric(median(name)/median("entirely wrong"), strings.ReplaceAll(name, " ", "_"))
			}
			b.ReportMetric(median("entirely wrong"), "ns/refusal")
		})
	}
}
