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

// memory is the persistent state of a device, independent of the cloud, and the format of its file.
type memory struct {
	LockID       string   `json:"lock_id"`
	Name         string   `json:"name,omitempty"` // set by the owner; defaults to the profile's
	Online       bool     `json:"online"`
	HubOffline   bool     `json:"hub_offline,omitempty"`
	Expired      bool     `json:"subscription_expired,omitempty"`
	Removed      bool     `json:"removed,omitempty"`
	Locked       bool     `json:"locked"`
	Jammed       bool     `json:"jammed,omitempty"`
	AutoLock     bool     `json:"auto_lock,omitempty"`
	AutoLockSecs float64  `json:"auto_lock_seconds,omitempty"` // 0 if never set
	BatteryLevel int      `json:"battery_level"`               // percent
	NextCode     int      `json:"next_code"`                   // number of the last code; never reused
	Codes        []stored `json:"access_codes"`

	Offline []offlineCode `json:"offline_codes,omitempty"`

	Thermostat *thermostatState `json:"thermostat,omitempty"`   // only of thermostats
	Noise      *noiseState      `json:"noise_sensor,omitempty"` // only of noise sensors
}

// reachable reports whether the cloud can reach the lock.
func (m *memory) reachable() bool { return m.Online && !m.HubOffline }

// stored is a code on the lock.
type stored struct {
	ID       string `json:"access_code_id"`
	CustomID string `json:"custom_id,omitempty"`
	Name     string `json:"name"`
	PIN      string `json:"code"`
	window
	Origin  origin `json:"origin"`
	Request string `json:"request,omitempty"` // the control request that added the code
}

// origin is how a code was added to the lock.
type origin string

const (
	fromFactory origin = "seed"
	fromAPI     origin = "api"
	fromKeypad  origin = "keypad"
)

// window is the time frame of a code. Both nil means always.
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
	if m.Thermostat != nil {
		c.Thermostat = new(*m.Thermostat)
	}
	if m.Noise != nil {
		c.Noise = m.Noise.clone()
	}
	return c
}

// files stores JSON documents below a directory; it stores nothing if empty.
type files string

// load reads the document into v, and reports whether it exists.
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

// remove deletes the document, if it exists.
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

// save replaces the document atomically.
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
