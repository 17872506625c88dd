package idempotency

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// KeyRetention is how long the server stores an answer for repeated requests.
const KeyRetention = 24 * time.Hour

const (
	keyHold           = 90 * time.Second // how long a key is held for work outside of a transaction
	keyReleaseTimeout = 5 * time.Second  // timeout for releasing a key
	keyBatch          = 1000             // old keys deleted in one transaction
)

// KeyedRequest is a request with an idempotency key. It takes effect once, however often it is repeated. A key
// is scoped to the workspace, the credential, and the operation, so answers never leak to other callers. The
// key of a publishable key, which is public, is also scoped to the content.
type KeyedRequest struct {
	Operation string
	Key       string
	Content   []byte // equal for equal requests
	// WithoutSlot runs wait, during which the request only waits for another one with its key. nil calls wait
	// directly.
	WithoutSlot func(ctx context.Context, wait func() error) error
}

// Answering performs the request and returns the answer.
type Answering func(ctx context.Context) (answer []byte, err error)

// Resuming rebuilds the answer to a request that started an attempt, and whose answer was lost.
type Resuming func(ctx context.Context, attempt uuid.UUID) (answer []byte, err error)

// Once answers a request by do, or replays the stored answer; replayed reports which. The writes of do with its
// context and the answer are one transaction. When do fails, nothing is stored, except for work before a
// Checkpoint.
//
// It fails with Conflict (KeyInUse) when another request with the key is not answered in time. It fails with
// Contradiction (KeyReused) when the key was used for another request, or by a client session whose scope has
// shrunk since.
func (s *Service) Once(
	ctx context.Context,
	p domain.Principal,
	r KeyedRequest,
	do Answering,
	resume Resuming,
) (answer []byte, replayed bool, err error) {
	name := []byte(r.Key)
	if p.Kind == domain.PublishableKey {
		name = append(append(name, 0), r.Content...)
	}
	o := &once{s: s, contentMAC: s.keys.MAC("idempotency_keys.request/"+r.Operation, r.Content)}
	o.row = dbsqlc.IdempotencyKey{
		WorkspaceID:  p.WorkspaceID,
		CredentialID: p.CredentialID,
		Operation:    r.Operation,
		KeyMac:       s.keys.IndexMAC("idempotency_keys.key", name),
		RequestMac:   slices.Concat(o.contentMAC, s.scopeMAC(p)),
		IsPublic:     p.IsPublic(),
	}
	leave, err := s.underWay.acquire(ctx, o.id(), s.opt.WaitTimeout, r.WithoutSlot)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	if p.IsPublic() {
		if err := s.makeRoom(ctx, p.WorkspaceID); err != nil {
			return nil, false, err
		}
	}
	var lost *uuid.UUID
	err = s.db.WithAmbientTx(ctx, func(ctx context.Context) error {
		o.checkpointed, lost = false, nil
		known, err := o.claim(ctx)
		switch {
		case err != nil:
			return err
		case known != nil && known.AnswerSealed == nil:
			lost = known.ActionAttemptID
			return nil
		case known != nil:
			replayed = true
			answer, err = s.keys.Open(answerPlace(known.IdempotencyKeyID), known.AnswerSealed)
			return err
		}
		if answer, err = do(context.WithValue(ctx, onceKey{}, o)); err != nil {
			return err
		}
		answer, err = o.storeAnswer(ctx, answer)
		return err
	})
	switch {
	case err != nil && o.checkpointed && o.row.ActionAttemptID == nil: // the caller may retry
		o.releaseKey(ctx)
	case err == nil && lost != nil:
		if answer, err = resume(ctx, *lost); err == nil {
			replayed = true
			answer, err = o.storeAnswer(ctx, answer)
		}
	}
	return answer, replayed, domain.Wrap(err, "answer a request with an Idempotency-Key")
}

// makeRoom deletes the oldest answered keys of public callers where a workspace has the maximum. Anyone can be such a
// caller, so keys could accumulate without limit.
func (s *Service) makeRoom(ctx context.Context, workspace uuid.UUID) error {
	now := s.opt.Now()
	if taken, known := s.public.Take(workspace, now); taken || known {
		return nil
	}
	n, err := s.db.CountPublicIdempotencyKeys(
		ctx,
		dbsqlc.CountPublicIdempotencyKeysParams{WorkspaceID: workspace, MaxRows: int32(s.opt.PublicKeys)},
	)
	if err != nil {
		return fmt.Errorf("count the keys of public callers: %w", err)
	}
	left := int64(s.opt.PublicKeys) - int64(n)
	if left <= 0 {
		if left, err = s.db.DropOldestPublicIdempotencyKeys(
			ctx,
			dbsqlc.DropOldestPublicIdempotencyKeysParams{
				WorkspaceID: workspace,
				MaxRows:     int32(s.opt.PublicKeys/10 + 1),
			},
		); err != nil {
			return fmt.Errorf("delete the oldest keys of public callers: %w", err)
		}
	}
	s.public.SetCount(workspace, max(int(left), 1), now)
	return nil
}

// once is a request that is being answered.
type once struct {
	s            *Service
	contentMAC   []byte // the MAC of the content, which is a prefix of the row's
	row          dbsqlc.IdempotencyKey
	checkpointed bool // past a Checkpoint: a rollback does not undo the work
}

type onceKey struct{}

func answerPlace(id uuid.UUID) string { return "idempotency_keys.answer/" + id.String() }

// id identifies the key within this process.
func (o *once) id() string {
	return o.row.WorkspaceID.String() + o.row.CredentialID.String() + o.row.Operation + string(o.row.KeyMac)
}

// claim inserts the key, or returns the row of the known request. It fails like Once.
func (o *once) claim(ctx context.Context) (known *dbsqlc.IdempotencyKey, err error) {
	o.row.IdempotencyKeyID = domain.NewID()
	_, err = o.s.db.ClaimIdempotencyKey(ctx, dbsqlc.ClaimIdempotencyKeyParams{
		IdempotencyKeyID: o.row.IdempotencyKeyID,
		WorkspaceID:      o.row.WorkspaceID,
		CredentialID:     o.row.CredentialID,
		Operation:        o.row.Operation,
		KeyMac:           o.row.KeyMac,
		RequestMac:       o.row.RequestMac,
		IsPublic:         o.row.IsPublic,
		Retention:        KeyRetention,
		WaitTimeout:      milliseconds(o.s.opt.WaitTimeout),
	})
	switch {
	case store.IsLockTimeout(err):
		return nil, keyInUse()
	case !store.IsNoRows(err):
		return nil, err
	}
	r, err := o.s.db.GetIdempotencyKey(ctx, dbsqlc.GetIdempotencyKeyParams{
		WorkspaceID:  o.row.WorkspaceID,
		CredentialID: o.row.CredentialID,
		Operation:    o.row.Operation,
		KeyMac:       o.row.KeyMac,
	})
	content, scope := encryption.SplitMAC(r.RequestMac)
	switch {
	case store.IsNoRows(err): // released concurrently
		return nil, keyInUse()
	case err != nil:
		return nil, err
	case !o.s.keys.Match(content, o.contentMAC):
		return nil, &domain.Error{
			Kind: domain.Mismatch,
			Type: KeyReused,
			Message: "This Idempotency-Key was already used with other parameters. Send a new key with each " +
				"new request, and the same key only with the same parameters.",
		}
	case !scopeStillCovers(scope, o.row.RequestMac[len(o.contentMAC):]):
		return nil, &domain.Error{
			Kind: domain.Mismatch,
			Type: KeyReused,
			Message: "The request with this key was completed, but the client session has lost access to " +
				"resources that it used. The stored answer is not replayed, and nothing was changed. Check the " +
				"current state before you send a new key.",
		}
	case r.AnswerSealed == nil && r.ActionAttemptID == nil:
		return nil, keyInUse()
	}
	o.row.IdempotencyKeyID = r.IdempotencyKeyID
	return &r, nil
}

// scopeMACSize is how many bytes are stored of the MAC of each account in a session's scope.
const scopeMACSize = 8

// scopeMAC returns the scope of a client session, one MAC for each account. The MAC of the session itself comes
// first, so that an empty scope differs from no scope. Other credentials have none.
func (s *Service) scopeMAC(p domain.Principal) (all []byte) {
	if p.Kind != domain.EndUser {
		return nil
	}
	for _, id := range slices.Concat([]uuid.UUID{p.CredentialID}, p.Scope) {
		all = append(all, s.keys.IndexMAC("idempotency_keys.reach/"+p.CredentialID.String(), id[:])[:scopeMACSize]...)
	}
	return all
}

// scopeStillCovers reports whether the scope now includes the scope then.
func scopeStillCovers(then, now []byte) bool {
	reached := slices.Collect(slices.Chunk(now, scopeMACSize))
	for one := range slices.Chunk(then, scopeMACSize) {
		if !slices.ContainsFunc(reached, func(r []byte) bool { return encryption.Equal(r, one) }) {
			return false
		}
	}
	return (len(then) == 0) == (len(now) == 0)
}

// storeAnswer stores the answer, and returns the stored one: that of another instance, if it was faster.
func (o *once) storeAnswer(ctx context.Context, answer []byte) ([]byte, error) {
	kept, err := o.s.db.AnswerIdempotencyKey(ctx, dbsqlc.AnswerIdempotencyKeyParams{
		IdempotencyKeyID: o.row.IdempotencyKeyID,
		WorkspaceID:      o.row.WorkspaceID,
		CredentialID:     o.row.CredentialID,
		Operation:        o.row.Operation,
		KeyMac:           o.row.KeyMac,
		RequestMac:       o.row.RequestMac,
		AnswerSealed:     o.s.keys.Seal(answerPlace(o.row.IdempotencyKeyID), answer),
		IsPublic:         o.row.IsPublic,
	})
	switch {
	case store.IsNoRows(err):
		return answer, nil
	case err != nil:
		return nil, err
	}
	return o.s.keys.Open(answerPlace(o.row.IdempotencyKeyID), kept)
}

// releaseKey releases the key. If that fails, the key stays held for keyHold.
func (o *once) releaseKey(ctx context.Context) {
	ctx, cancel := context.WithTimeout(store.DetachTx(context.WithoutCancel(ctx)), keyReleaseTimeout)
	defer cancel()
	if err := o.s.db.DropIdempotencyKey(
		ctx,
		dbsqlc.DropIdempotencyKeyParams{WorkspaceID: o.row.WorkspaceID, IdempotencyKeyID: o.row.IdempotencyKeyID},
	); err != nil {
		o.s.opt.Log.WarnContext(ctx, "cannot release an Idempotency-Key", "error", err)
	}
}

// Checkpoint commits the transaction of a request with a key. A request calls it before it waits for other
// transactions or does work outside of the database. The answer can be rebuilt from attempt. With a zero
// attempt, repeated requests are rejected until the request is answered. Without a key, Checkpoint does
// nothing.
func (s *Service) Checkpoint(ctx context.Context, attempt uuid.UUID) error {
	o, _ := ctx.Value(onceKey{}).(*once)
	if o == nil || o.checkpointed {
		return nil
	}
	if attempt != uuid.Nil {
		o.row.ActionAttemptID = &attempt
	}
	err := s.db.HoldIdempotencyKey(ctx, dbsqlc.HoldIdempotencyKeyParams{
		WorkspaceID:      o.row.WorkspaceID,
		IdempotencyKeyID: o.row.IdempotencyKeyID,
		ActionAttemptID:  o.row.ActionAttemptID,
		Hold:             keyHold,
	})
	if err == nil {
		err = s.db.CommitAmbient(ctx)
	}
	if err != nil {
		return fmt.Errorf("write the checkpoint of a request: %w", err)
	}
	o.checkpointed = true
	return nil
}

// RequestName returns a stable name of the request with a key that is being answered. Work outside of the
// database uses it to take effect once. It is empty for requests without a key.
func RequestName(ctx context.Context) string {
	o, _ := ctx.Value(onceKey{}).(*once)
	if o == nil {
		return ""
	}
	return hex.EncodeToString(o.s.keys.MAC("idempotency_keys.name/"+o.id(), o.contentMAC))
}

// DropOldAnswers deletes the answers of a workspace that have expired at a time.
func (s *Service) DropOldAnswers(ctx context.Context, workspace uuid.UUID, at time.Time) error {
	for {
		n, err := s.db.DropOldIdempotencyKeys(
			ctx,
			dbsqlc.DropOldIdempotencyKeysParams{
				WorkspaceID: workspace,
				Before:      at.Add(-KeyRetention),
				MaxRows:     keyBatch,
			},
		)
		if err != nil {
			return fmt.Errorf("delete old answers of workspace %s: %w", workspace, err)
		}
		if n < keyBatch {
			return nil
		}
	}
}

// Error types of Once.
const (
	KeyInUse  = "idempotency_key_in_use"
	KeyReused = "idempotency_key_reused"
)

func keyInUse() *domain.Error {
	return &domain.Error{
		Kind: domain.Conflict,
		Type: KeyInUse,
		Message: "A request with this Idempotency-Key is still in progress. Send it again with the same key " +
			"to get its result.",
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// underWay are the requests with keys in this process. Of those with one key, one at a time uses a database
// connection, in order of arrival.
type underWay struct {
	mu    sync.Mutex
	names map[string]*line
}

// line is the queue of one key.
type line struct {
	taken chan struct{} // has one element while a request with the key is being answered
	users int           // the request in progress and those that wait
}

// acquire waits until no other request with that name is in progress. The caller must call leave. It fails with
// Conflict after the timeout, with the error of withoutSlot, and when ctx ends.
func (u *underWay) acquire(
	ctx context.Context,
	name string,
	timeout time.Duration,
	withoutSlot func(context.Context, func() error) error,
) (leave func(), err error) {
	if withoutSlot == nil {
		withoutSlot = func(_ context.Context, wait func() error) error { return wait() }
	}
	l := u.join(name)
	acquired := false
	leave = func() {
		if acquired {
			<-l.taken
		}
		u.leave(name, l)
	}
	select {
	case l.taken <- struct{}{}:
		acquired = true
		return leave, nil
	default:
	}
	expired := time.NewTimer(timeout)
	defer expired.Stop()
	err = withoutSlot(ctx, func() error {
		select {
		case l.taken <- struct{}{}:
			acquired = true
			return nil
		case <-expired.C:
			return keyInUse()
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

func (u *underWay) join(name string) *line {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.names[name]
	if l == nil {
		l = &line{taken: make(chan struct{}, 1)}
		if u.names == nil {
			u.names = map[string]*line{}
		}
		u.names[name] = l
	}
	l.users++
	return l
}

func (u *underWay) leave(name string, l *line) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(u.names, name)
	}
}
