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

// RefreshInterval bounds how long an instance may use outdated data keys. After it, every instance seals with the
// current key.
const RefreshInterval = 5 * time.Second

// DataKey is a data key as stored.
type DataKey struct {
	// ID identifies the key in sealed bytes.
	ID byte
	// Wrapped is the result of Wrap.
	Wrapped []byte
	// Current is true for the key that seals. The other keys only open.
	Current bool
}

// Stored are the keys in the database.
type Stored struct {
	// Data are all data keys.
	Data []DataKey
	// Server are the server keys.
	Server []ServerKey
	// Now is the time of the database.
	Now time.Time
}

// Source returns the stored keys. It must read the server keys before the data keys that seal them.
type Source func(ctx context.Context) (Stored, error)

// ring holds the keys loaded at one time.
type ring struct {
	current key
	all     map[byte]key
	server  map[string][][]byte
	hash    [][]byte // by generation
	newest  int      // the generation of new hashes, which every instance has loaded
}

func (r *ring) open(place string, sealed []byte) ([]byte, error) {
	one, ok := r.all[sealed[0]]
	if !ok {
		return nil, ErrDecrypt
	}
	plain, err := one.aead.Open(nil, nil, sealed[1:], []byte(place))
	if err != nil {
		return nil, ErrDecrypt
	}
	return plain, nil
}

// SetSource makes the keys seal with the current data key of source and open with all of them. Call it before the keys
// are used. Open calls source when it meets an unknown key, possibly within a transaction. The source must therefore
// not wait for locks that a transaction may hold.
func (k *Keys) SetSource(ctx context.Context, source Source) error {
	k.source = source
	return k.Reload(ctx)
}

// Reload reads the data keys from the source immediately.
func (k *Keys) Reload(ctx context.Context) error {
	k.loading.Lock()
	defer k.loading.Unlock()
	return k.load(ctx)
}

func (k *Keys) load(ctx context.Context) error {
	if k.source == nil {
		return errors.New("the keys belong to no database")
	}
	kept, err := k.source(ctx)
	if err != nil {
		return fmt.Errorf("read the data keys: %w", err)
	}
	r := &ring{current: k.master, all: maps.Clone(k.masters)}
	for _, d := range kept.Data {
		one, err := k.unwrap(d)
		if err != nil {
			k.unwrapError.Store(&err)
			return err
		}
		r.all[d.ID] = one
		if d.Current {
			r.current = one
		}
	}
	k.unwrapError.Store(nil)
	if err := k.openServerKeys(r, kept); err != nil {
		return err
	}
	k.ring.Store(r)
	return nil
}

// UnwrapError returns the error of a data key that no master key here could unwrap at the last load, or nil. Other
// instances seal with such a key or have done so.
func (k *Keys) UnwrapError() error {
	if err := k.unwrapError.Load(); err != nil {
		return *err
	}
	return nil
}

// RefreshLoop reloads the keys until ctx ends. Seal does not wait for a load, because its caller may hold locks that
// the load needs. While the source fails, the loaded keys stay in use.
func (k *Keys) RefreshLoop(ctx context.Context) {
	const every = RefreshInterval / 2 // the other half is for the query
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		k.reloadSince(ctx, k.ring.Load())
	}
}

// reloadSince reloads the keys unless another goroutine has done so since known.
func (k *Keys) reloadSince(ctx context.Context, known *ring) *ring {
	if k.source == nil {
		return known
	}
	k.loading.Lock()
	defer k.loading.Unlock()
	if r := k.ring.Load(); r != known {
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, RefreshInterval/2)
	defer cancel()
	if err := k.load(ctx); err != nil {
		again := *known // do not retry for each secret
		k.ring.Store(&again)
	}
	return k.ring.Load()
}

// CurrentID returns the identifier of the key that seals.
func (k *Keys) CurrentID() byte { return k.ring.Load().current.id }

// SealedBy returns the identifier of the key that sealed.
func SealedBy(sealed []byte) byte { return sealed[0] }

func wrapPlace(id byte) string { return "data_keys.wrapped/" + strconv.Itoa(int(id)) }

// NewDataKey creates a data key with an identifier that is neither loaded nor in taken. It seals nothing until the
// source returns it as current. NewDataKey fails if all 255 identifiers are taken.
func (k *Keys) NewDataKey(taken []byte) (DataKey, error) { return k.newDataKey(k.master, taken) }

// FirstDataKey is NewDataKey for a database that was sealed with a master key. That master key wraps it, so that
// instances without a newer master key can open it.
func (k *Keys) FirstDataKey(sealed []byte) (DataKey, error) {
	if len(sealed) == 0 {
		return DataKey{}, ErrDecrypt
	}
	master, known := k.masters[sealed[0]]
	if !known {
		return DataKey{}, ErrDecrypt
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
	return DataKey{}, errors.New(
		"all 255 identifiers of data keys are taken; rotate again after the retired keys were removed",
	)
}

// Wrap returns the data key wrapped with the first master key, and whether that is a change. It fails if no master key
// opens the data key.
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
		return nil, fmt.Errorf(
			"open data key %d: %w; is the master key the one this database was created with?",
			d.ID,
			err,
		)
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
