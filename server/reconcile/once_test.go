package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/seal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/work"
)

// A request waits for its attempt on one instance, and is sent again to another, which answers first: that answer is
// everybody's.
func TestTwoInstancesGiveOneAnswer(t *testing.T) {
	t.Parallel()
	b := hand(t, options{profile: "august"})
	p := b.p
	p.CredentialID = uuid.New()
	r := access.KeyedRequest{Operation: "/x", Key: "k", Content: []byte("c")}
	waits, goOn := make(chan struct{}), make(chan struct{})
	first := make(chan string, 1)
	go func() {
		answer, _, err := b.access.Once(t.Context(), p, r, func(ctx context.Context) ([]byte, error) {
			_, a, err := b.access.CreateCode(ctx, b.p, access.NewCode{DeviceID: b.device, PIN: "2580", EvenIfOffline: true})
			if err == nil {
				err = b.access.Checkpoint(ctx, a)
			}
			close(waits)
			<-goOn
			return []byte("pending"), err
		}, nil)
		first <- fmt.Sprint(string(answer), err)
	}()
	<-waits
	other := access.New(b.db, b.keys, b.waker, access.Options{})
	second, _, err := other.Once(t.Context(), p, r, nil, func(context.Context, access.Attempt) ([]byte, error) { return []byte("success"), nil })
	b.must(err)
	close(goOn)
	third, _, err := other.Once(t.Context(), p, r, nil, nil)
	b.must(err)
	if got := []string{<-first, string(second), string(third)}; fmt.Sprint(got) != "[success<nil> success success]" {
		t.Errorf("the answers: %q", got)
	}
}

// What a server reads once for all requests needs no second connection of one that has the last.
func TestKeysOfAServerAreReadByThoseWhoHoldAllConnections(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db, err := store.Open(ctx, storetest.New(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	keys, err := seal.New(seal.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	waker, err := work.NewWaker(db)
	if err != nil {
		t.Fatal(err)
	}
	s := access.New(db, keys, waker, access.Options{})
	w, err := s.CreateWorkspace(ctx, "w", "c", true)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Once(ctx, access.Principal{WorkspaceID: w.ID}, access.KeyedRequest{Operation: "/x", Key: "k"}, func(ctx context.Context) ([]byte, error) {
		_, err := s.ServerKey(ctx, "connect_webviews")
		return nil, err
	}, nil)
	if err != nil {
		t.Error(err)
	}
}
