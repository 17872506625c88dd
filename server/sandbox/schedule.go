package sandbox

import (
	"container/heap"
	"sync"
	"time"
)

// scheduler runs functions at their times, sequentially, in one goroutine.
type scheduler struct {
	mu   sync.Mutex
	due  tasks
	seq  uint64
	wake chan struct{}
	stop chan struct{}
	done chan struct{}
	once sync.Once
}

type task struct {
	at  time.Time
	seq uint64 // tasks with the same time run in the order of their submission
	run func()
}

func newScheduler() *scheduler {
	s := &scheduler{
		wake: make(chan struct{}, 1),
		stop: make(chan struct{}),
		done: make(chan struct{}),
	}
	go s.loop()
	return s
}

// at runs f at t, unless the scheduler is closed earlier.
func (s *scheduler) at(t time.Time, f func()) {
	s.mu.Lock()
	s.seq++
	heap.Push(&s.due, task{at: t, seq: s.seq, run: f})
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// close waits for the running task and discards the others.
func (s *scheduler) close() {
	s.once.Do(func() { close(s.stop) })
	<-s.done
}

func (s *scheduler) loop() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		run, wait := s.next()
		if run != nil {
			select {
			case <-s.stop:
				return
			default:
			}
			run()
			continue
		}
		timer.Reset(wait)
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// next removes and returns the task that is due, or returns the wait for the next one.
func (s *scheduler) next() (run func(), wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) == 0 {
		return nil, time.Hour
	}
	if wait := time.Until(s.due[0].at); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&s.due).(task).run, 0
}

type tasks []task

func (t tasks) Len() int { return len(t) }
func (t tasks) Less(i, j int) bool {
	if t[i].at.Equal(t[j].at) {
		return t[i].seq < t[j].seq
	}
	return t[i].at.Before(t[j].at)
}
func (t tasks) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *tasks) Push(x any)   { *t = append(*t, x.(task)) }
func (t *tasks) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = task{}
	*t = old[:len(old)-1]
	return last
}
