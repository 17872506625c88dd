package encryption

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
)

// hashSize is the length of a keyed hash, without its generation.
const hashSize = 16

// MAC returns a keyed hash. Match compares it with others. It reveals nothing about plain without the newest hash key.
//
// A rotation appends a hash key to the earlier ones. The hash is then the hash, with the new key, of the hash with the
// earlier keys. So a stored hash is brought to the newest generation by Lift, without its plaintext. The result is a
// byte with the generation and hashSize bytes; generation 0 has no such byte.
func (k *Keys) MAC(scope string, plain []byte) []byte {
	r := k.ring.Load()
	return r.lift(keyedHash(r.hash[0], scope, plain), r.newest)
}

// MACs returns the keyed hashes of all generations, for a query by equality while hashes are lifted.
func (k *Keys) MACs(scope string, plain []byte) [][]byte {
	r := k.ring.Load()
	all := [][]byte{keyedHash(r.hash[0], scope, plain)}
	for generation := 1; generation < len(r.hash); generation++ {
		all = append(all, r.step(all[generation-1], generation))
	}
	return all
}

// IndexMAC returns a keyed hash of hashSize bytes with the first hash key, which stays the same when keys are rotated.
// It is for unique columns, and not for secrets that can be found by trying all.
func (k *Keys) IndexMAC(scope string, plain []byte) []byte {
	return keyedHash(k.ring.Load().hash[0], scope, plain)
}

// Generation returns the generation of new hashes. It rises ServerKeyDelay after ReplaceServerKey.
func (k *Keys) Generation() byte { return byte(k.ring.Load().newest) }

// Lift returns a hash in the newest generation. It keeps what follows the hash.
func (k *Keys) Lift(mac []byte) []byte {
	r := k.ringOf(mac)
	return r.lift(mac, len(r.hash)-1)
}

// Match compares two results of MAC in constant time; a missing one equals nothing.
func (k *Keys) Match(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	r := k.ringOf(a, b)
	return hmac.Equal(r.lift(a, len(r.hash)-1), r.lift(b, len(r.hash)-1))
}

// SplitMAC separates a result of MAC from what was appended to it. It returns nothing if there is none.
func SplitMAC(stored []byte) (mac, rest []byte) {
	size := hashSize
	if _, prefixed := generationOf(stored); prefixed {
		size++
	}
	if len(stored) < size {
		return nil, nil
	}
	return stored[:size], stored[size:]
}

// ringOf returns keys that know the generations of hashes, if any do.
func (k *Keys) ringOf(macs ...[]byte) *ring {
	r := k.ring.Load()
	for _, mac := range macs {
		if generation, _ := generationOf(mac); generation >= len(r.hash) { // another instance may have created a key
			r = k.reloadSince(context.Background(), r)
		}
	}
	return r
}

// generationOf returns the generation of a hash. What is appended to a hash must have a multiple of 8 bytes.
func generationOf(mac []byte) (generation int, prefixed bool) {
	if len(mac)%8 == 0 {
		return 0, false
	}
	return int(mac[0]), true
}

func (r *ring) lift(mac []byte, to int) []byte {
	generation, _ := generationOf(mac)
	hash, rest := SplitMAC(mac)
	if hash == nil {
		return mac
	}
	for generation++; generation <= to; generation++ {
		hash = r.step(hash, generation)
	}
	return append(hash[:len(hash):len(hash)], rest...)
}

// step returns the hash of a generation for the hash of the generation before.
func (r *ring) step(hash []byte, generation int) []byte {
	next := keyedHash(r.hash[generation], "generation", hash)
	return append([]byte{byte(generation)}, next...)
}

func keyedHash(key []byte, scope string, plain []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(scope))
	h.Write([]byte{0})
	h.Write(plain)
	return h.Sum(nil)[:hashSize]
}

// Equal compares two results of IndexMAC in constant time; a missing one equals nothing.
func Equal(a, b []byte) bool {
	return len(a) > 0 && hmac.Equal(a, b)
}

// Hashes makes and lifts keyed hashes with the keys of one moment, so that its results are equal for equal texts even
// while keys are rotated.
type Hashes struct{ ring *ring }

// HashesFor returns a Hashes that can lift the given hashes.
func (k *Keys) HashesFor(macs ...[]byte) Hashes { return Hashes{k.ringOf(macs...)} }

// Lift is Keys.Lift.
func (h Hashes) Lift(mac []byte) []byte { return h.ring.lift(mac, len(h.ring.hash)-1) }

// MAC is Keys.MAC, lifted.
func (h Hashes) MAC(scope string, plain []byte) []byte {
	return h.Lift(keyedHash(h.ring.hash[0], scope, plain))
}
