package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Tokens derives the credentials of a cloud from its seed. They are as secret as the seed.
type Tokens uint64

// Account returns the credential of the account with the key.
func (t Tokens) Account(key string) string { return t.of(key) }

// Partner returns the credential of a partner, which sends the logins of people. Each partner has its own accounts.
func (t Tokens) Partner(partner string) string { return t.of("partner/" + partner) }

// Owner returns the credential of the cloud's operator, which creates and deletes accounts.
func (t Tokens) Owner() string { return "sbx_" + hex.EncodeToString(t.digest("owner")) }

func (t Tokens) of(key string) string { return "sbx_" + hex.EncodeToString(t.digest("token", key)) }

func (t Tokens) digest(parts ...string) []byte {
	mac := hmac.New(sha256.New, binary.BigEndian.AppendUint64(nil, uint64(t)))
	for _, p := range parts {
		fmt.Fprintf(mac, "%d:%s", len(p), p)
	}
	return mac.Sum(nil)
}
