package lockstate

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
)

// A large ring needs the index of PINs: without it, a ring of 200 codes takes 12 s.
func TestOneCodeOfALargeRingStepsAside(t *testing.T) {
	t.Parallel()
	const all = 500
	pin := func(n int) PIN { return PIN(fmt.Sprint(1000 + n%all)) }
	l := &Lock{}
	for n := range all {
		l.Codes = append(l.Codes, &Code{
			ID:         uuid.New(),
			Managed:    true,
			DesiredGen: 2,
			AppliedGen: 1,
			Ref:        fmt.Sprint(n),
			PIN:        pin(n + 1),
			Applied:    &State{PIN: pin(n)},
		})
	}
	if aside := stepAside(l); len(aside) != 1 {
		t.Errorf("%d step aside, want 1", len(aside))
	}
	for n, c := range l.Codes {
		if got := l.pinHolder(c); got != l.Codes[(n+1)%all] {
			t.Fatalf("code %d waits for a code without its PIN", n)
		}
	}
	// A later change of a code breaks the ring.
	l.Codes[7].AppliedGen, l.Codes[7].PIN = 2, pin(7)
	if aside := stepAside(l); len(aside) != 0 {
		t.Errorf("%d step aside without a ring", len(aside))
	}
	if l.Codes = l.Codes[:3]; l.pinHolder(l.Codes[2]) != nil || l.pinHolder(l.Codes[0]) != l.Codes[1] {
		t.Error("a code waits for a deleted one")
	}
}

func stepAside(l *Lock) (aside []*Code) {
	for _, c := range l.Codes {
		if l.yieldsPIN(c) {
			aside = append(aside, c)
		}
	}
	return aside
}
