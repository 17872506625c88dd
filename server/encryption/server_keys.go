package encryption

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// HashKeyName is the name of the server key for keyed hashes.
const HashKeyName = "hashes"

// ServerKeyTTL is how long a server key is accepted after a rotation has replaced it.
const ServerKeyTTL = 7 * 24 * time.Hour

// ServerKeyDelay is how long a new server key is only accepted, until every instance has loaded it.
const ServerKeyDelay = RefreshInterval

// ServerKey is a key that all instances share, as stored: the sealed generations of the key. They are one value, so
// that bringing an earlier generation back takes a data key.
type ServerKey struct {
	Name   string
	Sealed []byte
}

// ServerKeyPlace returns the place that a server key is sealed for.
func ServerKeyPlace(name string) string { return "server_keys.sealed/" + name }

// generation is one generation of a server key. The plaintext of a server key is the first one, without a time, and
// then for each later one the time in seconds since 1970, in 8 bytes, and the key.
type generation struct {
	since  time.Time
	secret []byte
}

const generationSize = 8 + KeySize

func generations(plain []byte) ([]generation, error) {
	if len(plain)%generationSize != KeySize {
		return nil, errors.New("it has a length that no key has")
	}
	all := []generation{{secret: plain[:KeySize]}}
	for more := range slices.Chunk(plain[KeySize:], generationSize) {
		since := time.Unix(int64(binary.BigEndian.Uint64(more)), 0)
		all = append(all, generation{since: since, secret: more[8:]})
	}
	return all, nil
}

// ReplaceServerKey returns a server key with a new generation, sealed with a data key that need not be loaded. All hash
// keys stay, because hashes need all of them. Of other keys those stay that are accepted at now.
func (k *Keys) ReplaceServerKey(s ServerKey, by DataKey, now time.Time) ([]byte, error) {
	plain, err := k.Open(ServerKeyPlace(s.Name), s.Sealed)
	if err != nil {
		return nil, fmt.Errorf("open the key %s: %w", s.Name, err)
	}
	all, err := generations(plain)
	if err != nil {
		return nil, fmt.Errorf("open the key %s: %w", s.Name, err)
	}
	if s.Name != HashKeyName {
		all = accepted(all, now)
	}
	plain = slices.Clone(all[0].secret)
	for _, g := range append(all[1:], generation{since: now, secret: NewMaster()}) {
		plain = binary.BigEndian.AppendUint64(plain, uint64(g.since.Unix()))
		plain = append(plain, g.secret...)
	}
	one, err := k.unwrap(by)
	if err != nil {
		return nil, err
	}
	return one.seal(ServerKeyPlace(s.Name), plain), nil
}

// accepted returns the generations of a key, other than the hash key, that are accepted at a time.
func accepted(all []generation, now time.Time) []generation {
	for len(all) > 1 && !all[1].since.Add(ServerKeyTTL).After(now) {
		all = all[1:]
	}
	return all
}

// current returns the newest generation that every instance has loaded.
func current(all []generation, now time.Time) int {
	newest := len(all) - 1
	for newest > 0 && all[newest].since.Add(ServerKeyDelay).After(now) {
		newest--
	}
	return newest
}

// openServerKeys opens the server keys with the data keys of a ring.
func (k *Keys) openServerKeys(r *ring, stored Stored) error {
	r.server = map[string][][]byte{}
	for _, s := range stored.Server {
		all, err := r.generationsOf(s)
		if err != nil {
			return fmt.Errorf(
				"open the key %s: %w; is the master key the one this database was made with?",
				s.Name,
				err,
			)
		}
		if s.Name == HashKeyName {
			r.hash, r.newest = secrets(all), current(all, stored.Now)
			continue
		}
		all = accepted(all, stored.Now)
		current := current(all, stored.Now)
		keys := secrets(all)
		r.server[s.Name] = slices.Insert(slices.Delete(keys, current, current+1), 0, all[current].secret)
	}
	if r.hash == nil {
		r.hash = [][]byte{k.master.mac}
	}
	return nil
}

func (r *ring) generationsOf(s ServerKey) ([]generation, error) {
	if len(s.Sealed) == 0 {
		return nil, ErrDecrypt
	}
	plain, err := r.open(ServerKeyPlace(s.Name), s.Sealed)
	if err != nil {
		return nil, err
	}
	return generations(plain)
}

func secrets(all []generation) (out [][]byte) {
	for _, g := range all {
		out = append(out, g.secret)
	}
	return out
}

// ServerKeys returns the accepted keys of a name, the current one first, and none if the database has none.
func (k *Keys) ServerKeys(name string) [][]byte { return k.ring.Load().server[name] }

// FirstHashKey returns the hash key of a database that has none: the one that the master key made its hashes with.
func (k *Keys) FirstHashKey() []byte { return slices.Clone(k.master.mac) }
