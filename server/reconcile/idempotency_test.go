package reconcile_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/worker"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// A request waits for its attempt on one instance, and a retry on another instance answers first.
// Both return that response.
func TestIdempotency_TwoInstancesOneResponse(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	p := b.p
	p.CredentialID = uuid.New()
	r := idempotency.KeyedRequest{Operation: "/x", Key: "k", Content: []byte("c")}
	waits, goOn := make(chan struct{}), make(chan struct{})
	first := make(chan string, 1)
	go func() {
		answer, _, err := b.access.Idempotency.Once(t.Context(), p, r, func(ctx context.Context) ([]byte, error) {
			_, a, err := b.access.Devices.CreateCode(ctx, b.p,
				device.NewCode{DeviceID: b.device, PIN: "2580", EvenIfOffline: true})
			if err == nil {
				err = b.access.Idempotency.Checkpoint(ctx, a.ID)
			}
			close(waits)
			<-goOn
			return []byte("pending"), err
		}, nil)
		first <- fmt.Sprint(string(answer), err)
	}()
	<-waits
	other := access.New(b.db, b.keys, b.waker, access.Options{})
	second, _, err := other.Idempotency.Once(t.Context(), p, r, nil,
		func(context.Context, uuid.UUID) ([]byte, error) { return []byte("success"), nil })
	b.must(err)
	close(goOn)
	third, _, err := other.Idempotency.Once(t.Context(), p, r, nil, nil)
	b.must(err)
	if got := []string{<-first, string(second), string(third)}; fmt.Sprint(got) != "[success<nil> success success]" {
		t.Errorf("responses: %q", got)
	}
}

// Reading a server's keys needs no second connection of a caller that holds the last one.
func TestDataKeys_ReadWithLastConnection(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(testenv.WaitTimeout))
	defer cancel()
	db, err := store.Open(ctx, storetest.New(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	keys, err := encryption.New(encryption.NewMaster())
	if err == nil {
		err = keyrotation.FollowKeys(ctx, db, keys, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	waker, err := worker.NewWaker(db)
	if err != nil {
		t.Fatal(err)
	}
	s := access.New(db, keys, waker, access.Options{})
	w, err := s.Accounts.CreateWorkspace(ctx, "w", "c", true)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Idempotency.Once(
		ctx,
		domain.Principal{WorkspaceID: w.ID},
		idempotency.KeyedRequest{Operation: "/x", Key: "k"},
		func(ctx context.Context) ([]byte, error) {
			_, err := s.ServerKeys.ServerKey(ctx, "connect_webviews")
			return nil, err
		},
		nil,
	)
	if err != nil {
		t.Error(err)
	}
}

// Simulations run outside transactions. A repeated request after an interruption finds the code
// that it entered before. Both count as one act.
func TestIdempotency_RepeatedKeypadEntryHasOneAuditEntry(t *testing.T) {
	t.Parallel()
	b := start(t, options{profile: "august"})
	p := b.p
	p.CredentialID = uuid.New()
	type cut struct{}
	ask := func(key, pin string, dies bool) (code string) {
		t.Helper()
		defer func() {
			if r := recover(); r != nil && r != (cut{}) {
				panic(r)
			}
		}()
		ctx := audit.Acting(t.Context(), audit.Act{Principal: p, RequestID: uuid.New(), Operation: "/x"})
		answer, _, err := b.access.Idempotency.Once(
			ctx,
			p,
			idempotency.KeyedRequest{Operation: "/x", Key: key, Content: []byte(pin)},
			func(ctx context.Context) ([]byte, error) {
				c, err := b.rec.AddUnmanagedCode(ctx, p, b.device, "Found", pin)
				if dies {
					panic(cut{})
				}
				return []byte(c.ID.String()), err
			},
			nil,
		)
		b.must(err)
		return string(answer)
	}
	entries := func() (all []audit.Entry) {
		t.Helper()
		for e, err := range b.access.Audit.Audit(t.Context(), audit.Filter{Actor: p.CredentialID.String(), OldestFirst: true}) {
			b.must(err)
			all = append(all, e)
		}
		return all
	}
	ask("k", "987123", true)
	before := entries()
	// The first request never returns.
	_, err := b.db.Pool.Exec(t.Context(), "update idempotency_keys set held_until = now() - interval '1 s'")
	b.must(err)
	first := ask("k", "987123", false)
	if after := entries(); len(before) != 1 || !reflect.DeepEqual(after, before) {
		t.Errorf("entries %+v, after the retry %+v", before, after)
	}
	if second := ask("another", "987124", false); second == first || len(entries()) != 2 {
		t.Errorf("another request, for the code %s: %+v", second, entries())
	}

	// Once the code is gone, the same request is a new act.
	_, err = b.db.Pool.Exec(t.Context(), "delete from idempotency_keys")
	b.must(err)
	for _, c := range b.memory() {
		if c.Code == "987123" {
			b.control(http.MethodDelete, "keypad/codes/"+c.ID, nil)
		}
	}
	b.must(b.access.Accounts.Hint(t.Context(), b.account, b.lock))
	b.until("the code is gone", func() bool { return len(b.unmanaged()) == len(b.memory()) })
	if third := ask("k", "987123", false); third == first || len(entries()) != 3 {
		t.Errorf("first code %s, code after its removal %s: %+v", first, third, entries())
	}
}
