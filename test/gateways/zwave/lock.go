package zwave

import (
	"context"
	"slices"
	"testing"
)

// Lock is one lock of a gateway.
type Lock struct {
	ID      int // node id
	Profile Profile

	gateway *Gateway
}

func (l *Lock) do(t testing.TB, what string, in, out any) {
	t.Helper()
	if err := l.gateway.do(context.WithoutCancel(t.Context()), l.ID, what, in, out); err != nil {
		t.Fatalf("lock %d: %v", l.ID, err)
	}
}

// State is the actual memory of a lock.
type State struct {
	Locked bool         `json:"locked"`
	Frames int          `json:"frames"` // received since the gateway started
	Codes  map[int]Code `json:"codes"`  // by slot
	// Users has the names of profile Users, by number.
	Users map[int]string `json:"users"`
	// Cards has the user numbers of profile Users, by slot.
	Cards map[int]int `json:"cards"`
}

// Code is one code in a lock.
type Code struct {
	PIN      string `json:"pin"`
	Disabled bool   `json:"disabled"`
	Name     string `json:"name"`
	// startYear, startMonth … stopMinute, in the lock's time
	Schedule map[string]int `json:"schedule"`
}

// State reads the lock's memory.
func (l *Lock) State(t testing.TB) (s State) {
	t.Helper()
	l.do(t, "state", nil, &s)
	return s
}

// FreeSlot returns the highest empty slot.
func (l *Lock) FreeSlot(t testing.TB) int {
	t.Helper()
	codes := l.State(t).Codes
	for slot := Slots; slot > 0; slot-- {
		if _, taken := codes[slot]; !taken {
			return slot
		}
	}
	t.Fatal("the lock is full")
	return 0
}

// SetOnline disconnects the lock from the radio or reconnects it. The gateway has noticed when it returns.
func (l *Lock) SetOnline(t testing.TB, online bool) {
	t.Helper()
	what := "offline"
	if online {
		what = "online"
	}
	l.do(t, what, nil, nil)
}

// RestoreRadio makes the lock receive again without reporting that.
func (l *Lock) RestoreRadio(t testing.TB) { t.Helper(); l.do(t, "hear", nil, nil) }

type keypad struct {
	Slot   int    `json:"slot"`
	PIN    string `json:"pin,omitempty"`
	Silent bool   `json:"silent,omitempty"`
}

// Program programs a code at the keypad; an empty PIN deletes it.
func (l *Lock) Program(t testing.TB, slot int, pin string) {
	t.Helper()
	l.do(t, "keypad", keypad{Slot: slot, PIN: pin}, nil)
}

// ProgramSilently is Program on a lock that does not report it.
func (l *Lock) ProgramSilently(t testing.TB, slot int, pin string) {
	t.Helper()
	l.do(t, "keypad", keypad{Slot: slot, PIN: pin, Silent: true}, nil)
}

type card struct {
	User   int    `json:"user"`
	Name   string `json:"name"`
	Silent bool   `json:"silent"`
}

// Card assigns a card to a user of a lock of profile Users. It creates the user with this name if necessary. The card's
// slot is the user's number.
func (l *Lock) Card(t testing.TB, user int, name string) {
	t.Helper()
	l.do(t, "card", card{User: user, Name: name}, nil)
}

// CardSilently is Card on a lock that does not report it.
func (l *Lock) CardSilently(t testing.TB, user int, name string) {
	t.Helper()
	l.do(t, "card", card{User: user, Name: name, Silent: true}, nil)
}

// Disable disables a code at the lock without deleting it.
func (l *Lock) Disable(t testing.TB, slot int) {
	t.Helper()
	l.do(t, "disable", keypad{Slot: slot}, nil)
}

// Enter types a PIN in at the door.
func (l *Lock) Enter(t testing.TB, pin string) {
	t.Helper()
	l.do(t, "enter", keypad{PIN: pin}, nil)
}

// ByHand turns the lock's thumbturn.
func (l *Lock) ByHand(t testing.TB, locked bool) {
	t.Helper()
	l.do(t, "hand", map[string]bool{"locked": locked}, nil)
}

// Faults of a lock. Zero values end them.
type Faults struct {
	// Drop is the number of writes that are acknowledged and ignored.
	Drop int `json:"drop"`
	// Die kills the gateway at the next write, "before" or "after" the lock has received it.
	Die string `json:"die"`
	// Hang suspends the gateway at the next write, like Pause: "before" the lock receives it, and then it never does,
	// or "after".
	Hang string `json:"hang"`
	// Lose makes the lock lose the next written code after it has shown it once.
	Lose bool `json:"lose"`
	Jam  bool `json:"jam"` // the bolt does not move
	// Mute is the number of requests for users and their credentials that are acknowledged and not answered; profile
	// Users.
	Mute int `json:"mute"`
	// After is the number of requests that are answered before Mute starts.
	After int `json:"after"`
}

// Fault sets the lock's faults.
func (l *Lock) Fault(t testing.TB, f Faults) { t.Helper(); l.do(t, "fault", f, nil) }

// Remove excludes the lock from the network permanently. Do not use it on a shared gateway.
func (l *Lock) Remove(t testing.TB) { t.Helper(); l.do(t, "remove", nil, nil) }

// Include includes another lock of the same model with the identifier of the removed one. The gateway has interviewed
// it when it returns.
func (l *Lock) Include(t testing.TB) { t.Helper(); l.do(t, "include", nil, nil) }

// InUse returns the used slots, ascending.
func (s State) InUse() []int {
	var slots []int
	for slot := range s.Codes {
		slots = append(slots, slot)
	}
	slices.Sort(slots)
	return slots
}
