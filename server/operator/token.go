package operator

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// tokenSize is the number of random bytes of a token.
const tokenSize = 32

// newToken returns a token, and the hash that the database stores of it.
func newToken() (token string, hash []byte) {
	random := make([]byte, tokenSize)
	rand.Read(random)
	token = base64.RawURLEncoding.EncodeToString(random)
	return token, hashToken(token)
}

func hashToken(token string) []byte {
	hash := sha256.Sum256([]byte(token))
	return hash[:]
}

// deriveToken returns a token that only the holder of another one can compute.
func deriveToken(token, purpose string) string {
	h := hmac.New(sha256.New, []byte(token))
	h.Write([]byte(purpose))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// challengeTTL is how long the steps of a sign-in may take.
const challengeTTL = 5 * time.Minute

// challenge is the state between two steps of a sign-in. The browser keeps it sealed.
type challenge struct {
	Expires time.Time       `json:"e"`
	Random  string          `json:"r"` // makes challenges differ
	State   json.RawMessage `json:"s"`
}

// sealChallenge returns the state of a sign-in for the browser to keep. purpose tells kinds of challenges apart.
func (s *Service) sealChallenge(purpose string, state any) (string, error) {
	encoded, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	random, _ := newToken()
	plain, err := json.Marshal(challenge{Expires: s.opt.Now().Add(challengeTTL), Random: random, State: encoded})
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.keys.Seal("operator challenge/"+purpose, plain)), nil
}

// openChallenge reads a challenge of a purpose into state. It fails with Unauthorized if that has expired or is not the
// server's. It returns the name for useChallenge, because different texts can encode the same challenge.
func (s *Service) openChallenge(purpose, sealed string, state any) (name string, err error) {
	bytes, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return "", signInExpired()
	}
	plain, err := s.keys.Open("operator challenge/"+purpose, bytes)
	if err != nil {
		return "", signInExpired()
	}
	var c challenge
	if err := json.Unmarshal(plain, &c); err != nil || !s.opt.Now().Before(c.Expires) {
		return "", signInExpired()
	}
	return c.Random, json.Unmarshal(c.State, state)
}

// useChallenge marks a challenge as used. It fails with Unauthorized if it was used before.
func (s *Service) useChallenge(ctx context.Context, q *dbsqlc.Queries, name string) error {
	n, err := q.UseOperatorChallenge(ctx, dbsqlc.UseOperatorChallengeParams{
		ChallengeHash: hashToken(name),
		ExpiresAt:     s.opt.Now().Add(challengeTTL),
	})
	if err != nil {
		return fmt.Errorf("use the challenge of a sign-in: %w", err)
	}
	if n == 0 {
		return signInExpired()
	}
	return nil
}

func signInExpired() error {
	return unauthorized("sign_in_expired", "This sign-in took too long or was used already. Start again.")
}
