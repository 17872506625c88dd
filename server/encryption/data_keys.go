package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"
)

// Refresh is how old what is known of the data keys becomes: after that long, no instance seals with a key that is not
// the current one any more.
const Refresh = 5 * time.Second

// DataKey is a data key as it is kept.
type DataKey struct {
	ID      byte
	Wrapped []byte // by Wrap
	Current bool   // it seals; the others only open
}

// Source reads the data keys there are.
type Source func(ctx context.Context) ([]DataKey, error)

// ring is what is known of the keys at one time.
type ring struct {
	current key
	all     map[byte]key
}

func (r *ring) open(place string, sealed []byte) ([]byte, error) {
	one, ok := r.all[sealed[0]]
	if !ok {
		return nil, ErrOpen
	}
	plain, err := one.aead.Open(nil, nil, sealed[1:], []byte(place))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

// Follow has the keys seal with the current data key of a source, and open with all. Call it before they are used.
// The source is asked by whoever meets a key that is not known, also in the middle of a transaction: it must not wait
// for what a transaction holds.
func (k *Keys) Follow(ctx context.Context, source Source) error {
	k.source = source
	return k.Reread(ctx)
}

// Reread finds out at once which data keys there are.
func (k *Keys) Reread(ctx context.Context) error {
	k.reading.Lock()
	defer k.reading.Unlock()
	return k.read(ctx)
}

func (k *Keys) read(ctx context.Context) error {
	kept, err := k.source(ctx)
	if err != nil {
		return fmt.Errorf("read the data keys: %w", err)
	}
	r := &ring{current: k.master, all: maps.Clone(k.masters)}
	for _, d := range kept {
		one, err := k.unwrap(d)
		if err != nil {
			k.trouble.Store(&err)
			return err
		}
		r.all[d.ID] = one
		if d.Current {
			r.current = one
		}
	}
	k.trouble.Store(nil)
	k.ring.Store(r)
	return nil
}

// Trouble says which data key could not be opened when the source last told of them: others seal with it, or have, and none of the master keys
// here is the one that has wrapped it. Nil: all could.
func (k *Keys) Trouble() error {
	if err := k.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// KeepFresh reads the keys anew, time and again, until ctx ends. Whoever seals does not wait for that: he may hold what
// it takes to read them. While the source does not answer, what is known goes on.
func (k *Keys) KeepFresh(ctx context.Context) {
	const every = Refresh / 2 // the other half is for an answer
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		k.reread(ctx, k.ring.Load())
	}
}

// reread reads the keys unless somebody has done so since known.
func (k *Keys) reread(ctx context.Context, known *ring) *ring {
	if k.source == nil {
		return known
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	if r := k.ring.Load(); r != known {
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, Refresh/2)
	defer cancel()
	if err := k.read(ctx); err != nil {
		again := *known // not for each secret
		k.ring.Store(&again)
	}
	return k.ring.Load()
}

// Current is the identifier of the key that seals.
func (k *Keys) Current() byte { return k.ring.Load().current.id }

// SealedBy is the identifier of the key that has sealed.
func SealedBy(sealed []byte) byte { return sealed[0] }

func wrapPlace(id byte) string { return "data_keys.wrapped/" + strconv.Itoa(int(id)) }

// NewDataKey makes a data key whose identifier no key has that is known or among the taken. It seals nothing until its
// source names it.
func (k *Keys) NewDataKey(taken []byte) (DataKey, error) { return k.newDataKey(k.master, taken) }

// FirstDataKey is a NewDataKey for where the master key itself has sealed so far. It is wrapped by the one which that was, so that
// instances can open it that do not know a newer one yet.
func (k *Keys) FirstDataKey(sealed []byte) (DataKey, error) {
	if len(sealed) == 0 {
		return DataKey{}, ErrOpen
	}
	master, known := k.masters[sealed[0]]
	if !known {
		return DataKey{}, ErrOpen
	}
	return k.newDataKey(master, nil)
}

func (k *Keys) newDataKey(master key, taken []byte) (DataKey, error) {
	known := k.ring.Load().all
	for id := 1; id <= 255; id++ {
		if _, there := known[byte(id)]; !there && !bytes.Contains(taken, []byte{byte(id)}) {
			return DataKey{ID: byte(id), Wrapped: master.seal(wrapPlace(byte(id)), NewMaster())}, nil
		}
	}
	return DataKey{}, errors.New("all 255 identifiers of data keys are taken; rotate again when retired keys are gone")
}

// Wrap wraps a data key with the first master key, where an earlier one has wrapped it.
func (k *Keys) Wrap(d DataKey) (wrapped []byte, changed bool, err error) {
	if len(d.Wrapped) > 0 && d.Wrapped[0] == k.master.id {
		return d.Wrapped, false, nil
	}
	secret, err := k.unwrapped(d)
	if err != nil {
		return nil, false, err
	}
	return k.master.seal(wrapPlace(d.ID), secret), true, nil
}

func (k *Keys) unwrapped(d DataKey) ([]byte, error) {
	if len(d.Wrapped) == 0 {
		return nil, fmt.Errorf("data key %d is empty", d.ID)
	}
	secret, err := (&ring{all: k.masters}).open(wrapPlace(d.ID), d.Wrapped)
	if err != nil {
		return nil, fmt.Errorf("open data key %d: %w; is the master key the one this database was made with?", d.ID, err)
	}
	return secret, nil
}

func (k *Keys) unwrap(d DataKey) (key, error) {
	secret, err := k.unwrapped(d)
	if err != nil {
		return key{}, err
	}
	one, err := derive(secret)
	if err != nil {
		return key{}, fmt.Errorf("data key %d: %w", d.ID, err)
	}
	one.id = d.ID
	return one, nil
}

// HashKey is the key that MAC uses.
func (k *Keys) HashKey() []byte { return bytes.Clone(k.mac) }

// HashWith has MAC use a key of its own, so that hashes stay what they are when the master key changes. Call it before
// the keys are used.
func (k *Keys) HashWith(mac []byte) { k.mac = bytes.Clone(mac) }
