package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// memory is what a lock remembers by itself, whatever becomes of its cloud. It is also the file's format.
type memory struct {
	LockID       string   `json:"lock_id"`
	Name         string   `json:"name,omitempty"` // given by its owner; empty: the profile's
	Online       bool     `json:"online"`
	HubOffline   bool     `json:"hub_offline,omitempty"`
	Expired      bool     `json:"subscription_expired,omitempty"`
	Removed      bool     `json:"removed,omitempty"`
	Locked       bool     `json:"locked"`
	Jammed       bool     `json:"jammed,omitempty"`
	AutoLock     bool     `json:"auto_lock,omitempty"`
	AutoLockSecs float64  `json:"auto_lock_seconds,omitempty"` // after which it locks itself; 0: never set
	BatteryLevel int      `json:"battery_level"`               // percent
	NextCode     int      `json:"next_code"`                   // numbers codes, never twice
	Codes        []stored `json:"access_codes"`

	Offline []offlineCode `json:"offline_codes,omitempty"`
}

// reachable says whether the cloud reaches the lock.
func (m *memory) reachable() bool { return m.Online && !m.HubOffline }

// stored is a code on the lock.
type stored struct {
	ID       string `json:"access_code_id"`
	CustomID string `json:"custom_id,omitempty"`
	Name     string `json:"name"`
	PIN      string `json:"code"`
	window
	Origin  origin `json:"origin"`
	Request string `json:"request,omitempty"` // that has typed it in
}

// origin says how a code came onto the lock.
type origin string

const (
	fromFactory origin = "seed"
	fromAPI     origin = "api"
	fromKeypad  origin = "keypad"
)

// window is the time frame of a code; both nil: always.
type window struct {
	StartsAt *time.Time `json:"starts_at"`
	EndsAt   *time.Time `json:"ends_at"`
}

func (w window) open() bool { return w.StartsAt == nil && w.EndsAt == nil }

func (w window) same(other window) bool {
	return sameTime(w.StartsAt, other.StartsAt) && sameTime(w.EndsAt, other.EndsAt)
}

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

func (w window) contains(t time.Time) bool {
	return w.open() || !t.Before(*w.StartsAt) && t.Before(*w.EndsAt)
}

func (m *memory) find(id string) *stored {
	if i := slices.IndexFunc(m.Codes, func(c stored) bool { return c.ID == id }); i >= 0 {
		return &m.Codes[i]
	}
	return nil
}

func (m *memory) withPIN(pin string) *stored {
	if i := slices.IndexFunc(m.Codes, func(c stored) bool { return c.PIN == pin }); i >= 0 {
		return &m.Codes[i]
	}
	return nil
}

func (m *memory) clone() memory {
	c := *m
	c.Codes = slices.Clone(m.Codes)
	return c
}

// files keeps JSON documents below a directory; empty: nowhere.
type files string

// load reads the named document into v and says whether there was one.
func (d files) load(name string, v any) (bool, error) {
	if d == "" {
		return false, nil
	}
	data, err := os.ReadFile(filepath.Join(string(d), name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	return true, nil
}

// remove takes the named document away, if it is there.
func (d files) remove(name string) error {
	if d == "" {
		return nil
	}
	err := os.Remove(filepath.Join(string(d), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// save replaces the named document as a whole, or leaves it as it was.
func (d files) save(name string, v any) error {
	if d == "" {
		return nil
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(string(d), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
