package zwave

import (
	"context"
	"slices"
	"testing"
)

// Lock is one lock of a gateway.
type Lock struct {
	ID      int // of its node
	Profile Profile

	gateway *Gateway
}

func (l *Lock) do(t testing.TB, what string, in, out any) {
	t.Helper()
	if err := l.gateway.do(context.WithoutCancel(t.Context()), l.ID, what, in, out); err != nil {
		t.Fatalf("lock %d: %v", l.ID, err)
	}
}

// State is what is really in a lock.
type State struct {
	Locked bool           `json:"locked"`
	Frames int            `json:"frames"` // it has been sent since the gateway started
	Codes  map[int]Code   `json:"codes"`  // by slot
	Users  map[int]string `json:"users"`  // of profile Users: their names, by number
	Cards  map[int]int    `json:"cards"`  // of profile Users: whose they are, by slot
}

// Code is one code in a lock.
type Code struct {
	PIN      string         `json:"pin"`
	Disabled bool           `json:"disabled"`
	Name     string         `json:"name"`
	Schedule map[string]int `json:"schedule"` // startYear, startMonth … stopMinute, in the lock's time
}

// State reads the lock's memory.
func (l *Lock) State(t testing.TB) (s State) {
	t.Helper()
	l.do(t, "state", nil, &s)
	return s
}

// FreeSlot is the highest slot that holds nothing.
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

// SetOnline takes the lock off the radio and back; the gateway has noticed when it returns.
func (l *Lock) SetOnline(t testing.TB, online bool) {
	t.Helper()
	what := "offline"
	if online {
		what = "online"
	}
	l.do(t, what, nil, nil)
}

// Hear lets the lock hear the radio again, without saying so.
func (l *Lock) Hear(t testing.TB) { t.Helper(); l.do(t, "hear", nil, nil) }

type keypad struct {
	Slot   int    `json:"slot"`
	PIN    string `json:"pin,omitempty"`
	Silent bool   `json:"silent,omitempty"`
}

// Program has somebody program a code at the keypad; an empty PIN deletes.
func (l *Lock) Program(t testing.TB, slot int, pin string) {
	t.Helper()
	l.do(t, "keypad", keypad{Slot: slot, PIN: pin}, nil)
}

// ProgramSilently is Program on a lock that does not tell.
func (l *Lock) ProgramSilently(t testing.TB, slot int, pin string) {
	t.Helper()
	l.do(t, "keypad", keypad{Slot: slot, PIN: pin, Silent: true}, nil)
}

type card struct {
	User   int    `json:"user"`
	Name   string `json:"name"`
	Silent bool   `json:"silent"`
}

// Card has somebody give a user a card, at a lock of profile Users. One who is not there is made, and called name. The
// card's slot is the user's number.
func (l *Lock) Card(t testing.TB, user int, name string) {
	t.Helper()
	l.do(t, "card", card{User: user, Name: name}, nil)
}

// CardSilently is Card on a lock that does not tell.
func (l *Lock) CardSilently(t testing.TB, user int, name string) {
	t.Helper()
	l.do(t, "card", card{User: user, Name: name, Silent: true}, nil)
}

// Disable has somebody keep a code from opening the door, without deleting it.
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
	Drop  int    `json:"drop"`  // so many writes are acknowledged and ignored
	Die   string `json:"die"`   // the gateway is killed with the next write: "before" or "after" the lock has it
	Hang  string `json:"hang"`  // the gateway stands still at the next write, as after Pause: "before", and the lock never has it, or "after"
	Lose  bool   `json:"lose"`  // the next code that is written is lost again once the lock has shown it
	Jam   bool   `json:"jam"`   // the bolt cannot be moved
	Mute  int    `json:"mute"`  // so many questions for users and their credentials are acknowledged and not answered, of profile Users
	After int    `json:"after"` // so many are answered before those
}

// Fault sets the lock's faults.
func (l *Lock) Fault(t testing.TB, f Faults) { t.Helper(); l.do(t, "fault", f, nil) }

// Remove excludes the lock from the network, for good: not on a gateway that others share.
func (l *Lock) Remove(t testing.TB) { t.Helper(); l.do(t, "remove", nil, nil) }

// Include includes another lock of the same model, under the identifier of the one that was removed. The gateway has
// interviewed it when it returns.
func (l *Lock) Include(t testing.TB) { t.Helper(); l.do(t, "include", nil, nil) }

// InUse are the slots that hold something, ascending.
func (s State) InUse() []int {
	var slots []int
	for slot := range s.Codes {
		slots = append(slots, slot)
	}
	slices.Sort(slots)
	return slots
}
