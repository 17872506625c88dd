// Package encryption encrypts column values, each bound to its place, and computes keyed hashes, by which equal secrets
// are found without decrypting them. The package must not know tables, nor what a PIN is.
//
// Data keys encrypt the columns. The database stores them wrapped by a master key, which is not in the database
// (data_keys.go). While there is no data key, the master key itself encrypts.
package encryption

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// ErrDecrypt reports that sealed bytes belong to another key or place, or were changed.
var ErrDecrypt = errors.New("sealed with another key or for another place")

// Keys seals with one key, and opens what this or an earlier key has sealed.
type Keys struct {
	master  key // the first one, which wraps data keys
	masters map[byte]key
	ring    atomic.Pointer[ring]

	source      Source // nil if there are no data keys
	unwrapError atomic.Pointer[error]
	loading     sync.Mutex
}

type key struct {
	id   byte
	aead cipher.AEAD
	mac  []byte
}

// New derives keys from master keys of KeySize bytes. The first one seals and computes keyed hashes until SetSource
// loads the keys of a database; all of them open.
func New(masters ...[]byte) (*Keys, error) {
	if len(masters) == 0 {
		return nil, errors.New("no master key")
	}
	k := &Keys{masters: map[byte]key{}}
	for i, m := range masters {
		one, err := derive(m)
		if err != nil {
			return nil, err
		}
		if _, ok := k.masters[one.id]; ok {
			return nil, errors.New("two master keys have the same identifier; create another one")
		}
		k.masters[one.id] = one
		if i == 0 {
			k.master = one
		}
	}
	k.ring.Store(&ring{current: k.master, all: k.masters, hash: [][]byte{k.master.mac}})
	return k, nil
}

func derive(secret []byte) (key, error) {
	if len(secret) != KeySize {
		return key{}, fmt.Errorf("a key must have %d bytes, this one has %d", KeySize, len(secret))
	}
	part := func(info string, n int) ([]byte, error) {
		return hkdf.Key(sha256.New, secret, nil, "deviceaccess "+info, n)
	}
	enc, err := part("seal", 32)
	if err != nil {
		return key{}, err
	}
	mac, err := part("mac", 32)
	if err != nil {
		return key{}, err
	}
	id, err := part("id", 1)
	if err != nil {
		return key{}, err
	}
	block, err := aes.NewCipher(enc)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, err
	}
	return key{id: id[0], aead: aead, mac: mac}, nil
}

func (k key) seal(place string, plain []byte) []byte {
	return k.aead.Seal([]byte{k.id}, nil, plain, []byte(place))
}

// Seal encrypts plain for place, a name such as "webhooks.secret/<id>". A value sealed for one row does not open for
// another. The result is one byte of key identifier, the nonce, the ciphertext, and its tag.
func (k *Keys) Seal(place string, plain []byte) []byte {
	return k.ring.Load().current.seal(place, plain)
}

// Open decrypts a result of Seal for the same place. It returns ErrDecrypt if that fails.
func (k *Keys) Open(place string, sealed []byte) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, ErrDecrypt
	}
	r := k.ring.Load()
	if _, known := r.all[sealed[0]]; !known { // another instance may have created a key
		r = k.reloadSince(context.Background(), r)
	}
	return r.open(place, sealed)
}
