package operator

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// The second recommended parameters of argon2id: RFC 9106, section 4.
const (
	argonMemory  = 64 << 10 // KiB
	argonTime    = 3
	argonThreads = 4
	saltSize     = 16
	hashSize     = 32
)

// Limits of the length of a password: the minimum in characters, and the maximum in bytes.
const (
	MinPassword = 12
	MaxPassword = 256
)

// maxHashes is how many passwords are hashed at a time. Each takes argonMemory.
const maxHashes = 2

// hasher hashes passwords as PHC strings.
type hasher struct {
	slots chan struct{}
	count atomic.Int64 // of hashes so far
}

func newHasher() *hasher { return &hasher{slots: make(chan struct{}, maxHashes)} }

// CheckPassword fails with Invalid for a password that is too short or too long.
func CheckPassword(password string) error {
	switch {
	case utf8.RuneCountInString(password) < MinPassword:
		return domain.Invalidf("password", "Use a password of at least %d characters.", MinPassword)
	case len(password) > MaxPassword:
		return domain.Invalidf("password", "Use a password of at most %d bytes.", MaxPassword)
	case !utf8.ValidString(password):
		return domain.Invalidf("password", "The password is not UTF-8.")
	}
	return nil
}

// derive hashes a password. It waits while maxHashes others are hashed, and fails when ctx is done.
func (h *hasher) derive(ctx context.Context, password string, salt []byte) ([]byte, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h.count.Add(1)
	return argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, hashSize), nil
}

// hash returns the PHC string of a password with a new salt.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltSize)
	rand.Read(salt)
	key, err := h.derive(ctx, password, salt)
	if err != nil {
		return "", fmt.Errorf("hash the password: %w", err)
	}
	return fmt.Sprintf("%s%s$%s", phcPrefix(), phcEncoding.EncodeToString(salt), phcEncoding.EncodeToString(key)), nil
}

var phcEncoding = base64.RawStdEncoding

func phcPrefix() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$", argon2.Version, argonMemory, argonTime, argonThreads)
}

// decoy has the place of the hash of an operator without a password, so that wrong passwords always cost the same.
var decoy = phcPrefix() + phcEncoding.EncodeToString(make([]byte, saltSize)) + "$" +
	phcEncoding.EncodeToString(make([]byte, hashSize))

// matches reports whether a password has a hash. An empty hash matches nothing, at the same cost.
func (h *hasher) matches(ctx context.Context, hash, password string) (bool, error) {
	possible := hash != "" && len(password) <= MaxPassword
	if hash == "" {
		hash = decoy
	}
	if len(password) > MaxPassword {
		password = ""
	}
	rest, known := strings.CutPrefix(hash, phcPrefix())
	saltText, keyText, complete := strings.Cut(rest, "$")
	salt, badSalt := phcEncoding.DecodeString(saltText)
	want, badKey := phcEncoding.DecodeString(keyText)
	if !known || !complete || badSalt != nil || badKey != nil {
		return false, fmt.Errorf("the hash of a password has an unknown format")
	}
	key, err := h.derive(ctx, password, salt)
	if err != nil {
		return false, fmt.Errorf("check the password: %w", err)
	}
	return subtle.ConstantTimeCompare(key, want) == 1 && possible, nil
}

// CheckCredentials fails with Invalid for an email address or a password that CreateOperator refuses.
func CheckCredentials(email, password string) error {
	return domain.All(checkEmail(email), CheckPassword(password))
}
