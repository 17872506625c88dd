package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Tokens are the credentials of a cloud with this seed: whoever knows the one knows the others.
type Tokens uint64

// Account is the credential of the account with that key.
func (t Tokens) Account(key string) string { return t.of(key) }

// Partner is the credential of a partner, who may send people's logins. Each has accounts of its own.
func (t Tokens) Partner(partner string) string { return t.of("partner/" + partner) }

// Owner is the credential of who runs the cloud, and makes and ends accounts.
func (t Tokens) Owner() string { return "sbx_" + hex.EncodeToString(t.digest("owner")) }

func (t Tokens) of(key string) string { return "sbx_" + hex.EncodeToString(t.digest("token", key)) }

func (t Tokens) digest(parts ...string) []byte {
	mac := hmac.New(sha256.New, binary.BigEndian.AppendUint64(nil, uint64(t)))
	for _, p := range parts {
		fmt.Fprintf(mac, "%d:%s", len(p), p)
	}
	return mac.Sum(nil)
}
