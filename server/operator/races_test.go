package operator_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/operator"
)

// succeed runs f several times at once, and returns how often it succeeded.
func succeed(f func(i int) error) (n int64) {
	var wg sync.WaitGroup
	var done atomic.Int64
	for i := range 4 {
		wg.Go(func() {
			if f(i) == nil {
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return done.Load()
}

func TestFirstRunLink_UsedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	token, err := b.FirstRunLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := succeed(func(i int) error {
		a := operator.Acceptance{Email: fmt.Sprintf("jane%d@example.com", i), Password: password}
		_, err := b.AcceptLink(t.Context(), token, a, client)
		return err
	})
	if all, err := b.ListOperators(t.Context()); n != 1 || err != nil || len(all) != 1 {
		t.Errorf("%d uses, %d operators, %v", n, len(all), err)
	}
}

func TestSecondFactor_SameCodeAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	secret := b.withTOTP(b.create("jane@example.com", domain.RoleAdmin))
	b.pass(time.Minute)
	_, pending, err := b.SignIn(t.Context(), "jane@example.com", password, client)
	if err != nil {
		t.Fatal(err)
	}
	code := b.code(secret)
	if n := succeed(func(int) error {
		_, err := b.SecondFactor(t.Context(), pending, code, client)
		return err
	}); n != 1 {
		t.Errorf("the code was accepted %d times", n)
	}
}

// Two administrators who disable each other do not both succeed.
func TestLastAdmin_StaysAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	admins := []operator.Operator{
		b.create("jane@example.com", domain.RoleAdmin), b.create("joe@example.com", domain.RoleAdmin),
	}
	if n := succeed(func(i int) error {
		_, err := b.SetDisabled(t.Context(), admins[i%2].ID, true)
		return err
	}); n == 0 {
		t.Error("none was disabled")
	}
	all, err := b.ListOperators(t.Context())
	if err != nil || (all[0].DisabledAt == nil) == (all[1].DisabledAt == nil) {
		t.Errorf("%+v %v", all, err)
	}
}

// Codes that are guessed at the same time count like those that are guessed one after the other.
func TestSecondFactor_LimitsCodesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, operator.Options{})
	b.withTOTP(b.create("jane@example.com", domain.RoleAdmin))
	_, pending, err := b.SignIn(t.Context(), "jane@example.com", password, client)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var checked, refused atomic.Int64
	start := make(chan struct{})
	for range 40 {
		wg.Go(func() {
			<-start
			_, err := b.SecondFactor(t.Context(), pending, "12345", client)
			switch e, _ := domain.AsError(err); {
			case e != nil && e.Type == "sign_in_failed":
				checked.Add(1)
			case e != nil && e.Type == "too_many_codes":
				refused.Add(1)
			default:
				t.Errorf("a wrong code: %v", err)
			}
		})
	}
	close(start)
	wg.Wait()
	if checked.Load() != 10 || refused.Load() != 30 {
		t.Errorf("%d codes were checked, %d refused", checked.Load(), refused.Load())
	}
}
