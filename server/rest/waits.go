package rest

import (
	"sync"

	"github.com/google/uuid"
)

// How many requests with sync wait at once: each asks the database now and then.
const (
	mostWaits     = 400
	mostWaitsEach = 100 // of one credential
)

// waits are the requests of this process that wait for an attempt, by credential.
type waits struct {
	mu   sync.Mutex
	all  int
	each map[uuid.UUID]int
}

// enter says whether one more may wait. Whoever may, leaves.
func (w *waits) enter(credential uuid.UUID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= mostWaits || w.each[credential] >= mostWaitsEach {
		return false
	}
	if w.each == nil {
		w.each = map[uuid.UUID]int{}
	}
	w.all++
	w.each[credential]++
	return true
}

func (w *waits) leave(credential uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.each[credential]--; w.each[credential] == 0 {
		delete(w.each, credential)
	}
}
