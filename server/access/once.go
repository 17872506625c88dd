package access

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// KeyRetention is how long an answer is kept for requests that come again with its key.
const KeyRetention = 24 * time.Hour

const (
	keyHeldFor     = 90 * time.Second // how long a key is held for what is not done in a transaction
	keyGivenWithin = 5 * time.Second  // how long it may take to give one back
	keyBatch       = 1000             // old keys removed in one transaction
)

// KeyedRequest is a request that has its effect once, however often it comes: its sender names it by a key. Keys are
// the sender's own, in each workspace and for each operation: they tell nobody of another's answers. Those that come with a
// publishable key, which everybody has, are told apart by what they ask for besides.
type KeyedRequest struct {
	Operation string
	Key       string
	Content   []byte // equal for equal requests
	// Aside runs wait, in which the request only waits for another one with its key; nil: just so.
	Aside func(ctx context.Context, wait func() error) error
}

// Answering does what is asked and returns the answer.
type Answering func(ctx context.Context) (answer []byte, err error)

// Resuming makes the answer to a request whose effect was to begin an attempt, and whose answer was lost.
type Resuming func(ctx context.Context, attempt uuid.UUID) (answer []byte, err error)

// Once answers a request by do, or like before when it has been answered before; replayed tells. What do does with the
// context that it is given is one transaction with the answer: both are there, or neither. When do fails, nothing has
// happened and nothing is kept, except for what was done past a Checkpoint.
//
// It fails with Conflict (KeyInUse) when another request with the key is not answered in time, and with Contradiction
// (KeyReused) when it was another request, or one of a client session that does not reach any more what it reached then.
func (s *Service) Once(ctx context.Context, p Principal, r KeyedRequest, do Answering, resume Resuming) (answer []byte, replayed bool, err error) {
	name := []byte(r.Key)
	if p.Kind == PublishableKey {
		name = append(append(name, 0), r.Content...)
	}
	o := &once{s: s, asked: s.keys.MAC("idempotency_keys.request/"+r.Operation, r.Content)}
	o.row = dbsqlc.IdempotencyKey{WorkspaceID: p.WorkspaceID, CredentialID: p.CredentialID, Operation: r.Operation,
		KeyMac: s.keys.MAC("idempotency_keys.key", name), RequestMac: slices.Concat(o.asked, s.reachMAC(p))}
	leave, err := s.underWay.enter(ctx, o.name(), s.opt.KeyPatience, r.Aside)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	var lost *uuid.UUID
	err = s.db.InOne(ctx, func(ctx context.Context) error {
		o.past, lost = false, nil
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
		answer, err = o.keep(ctx, answer)
		return err
	})
	switch {
	case err != nil && o.past && o.row.ActionAttemptID == nil: // it may be tried again
		o.drop(ctx)
	case err == nil && lost != nil:
		if answer, err = resume(ctx, *lost); err == nil {
			replayed = true
			answer, err = o.keep(ctx, answer)
		}
	}
	return answer, replayed, Wrap(err, "answer a request with an Idempotency-Key")
}

// once is a request that is being answered.
type once struct {
	s     *Service
	asked []byte // the MAC of what is asked for, which is what the row's begins with
	row   dbsqlc.IdempotencyKey
	past  bool // what is done is not undone with the row any more
}

type onceKey struct{}

func answerPlace(id uuid.UUID) string { return "idempotency_keys.answer/" + id.String() }

// name tells keys apart within this process.
func (o *once) name() string {
	return o.row.WorkspaceID.String() + o.row.CredentialID.String() + o.row.Operation + string(o.row.KeyMac)
}

// claim writes down the key, unless the request is known: then it returns what is known of it. It fails like Once.
func (o *once) claim(ctx context.Context) (known *dbsqlc.IdempotencyKey, err error) {
	o.row.IdempotencyKeyID = NewID()
	_, err = o.s.db.ClaimIdempotencyKey(ctx, dbsqlc.ClaimIdempotencyKeyParams{IdempotencyKeyID: o.row.IdempotencyKeyID, WorkspaceID: o.row.WorkspaceID,
		CredentialID: o.row.CredentialID, Operation: o.row.Operation, KeyMac: o.row.KeyMac, RequestMac: o.row.RequestMac, Retention: KeyRetention,
		Patience: milliseconds(o.s.opt.KeyPatience)})
	switch {
	case store.GaveUp(err):
		return nil, keyInUse()
	case !store.IsNoRows(err):
		return nil, err
	}
	r, err := o.s.db.GetIdempotencyKey(ctx, dbsqlc.GetIdempotencyKeyParams{WorkspaceID: o.row.WorkspaceID, CredentialID: o.row.CredentialID,
		Operation: o.row.Operation, KeyMac: o.row.KeyMac})
	switch {
	case store.IsNoRows(err): // given back meanwhile
		return nil, keyInUse()
	case err != nil:
		return nil, err
	case len(r.RequestMac) < len(o.asked) || !encryption.Equal(r.RequestMac[:len(o.asked)], o.asked):
		return nil, &Error{Kind: Contradiction, Type: KeyReused,
			Message: "Another request with other parameters came with this Idempotency-Key before. Send a new key with each new request, and the same key only with the same parameters."}
	case !reachedStill(r.RequestMac[len(o.asked):], o.row.RequestMac[len(o.asked):]):
		return nil, &Error{Kind: Contradiction, Type: KeyReused,
			Message: "This request was answered before, when the client session reached what it does not reach any more; that answer is not given again, and nothing was done now. Look at what there is before you send a new key."}
	case r.AnswerSealed == nil && r.ActionAttemptID == nil:
		return nil, keyInUse()
	}
	o.row.IdempotencyKeyID = r.IdempotencyKeyID
	return &r, nil
}

// reachMACSize is what is kept of the MAC of each thing that a session reaches.
const reachMACSize = 8

// reachMAC stands for what a client session reaches when it asks, one MAC for each account. Its own comes before these: what
// was written down without is not taken for the request of a session that reached nothing. Other credentials have none.
func (s *Service) reachMAC(p Principal) (all []byte) {
	if p.Kind != EndUser {
		return nil
	}
	for _, id := range slices.Concat([]uuid.UUID{p.CredentialID}, p.Reach) {
		all = append(all, s.keys.MAC("idempotency_keys.reach/"+p.CredentialID.String(), id[:])[:reachMACSize]...)
	}
	return all
}

// reachedStill says whether all that was reached is reached now; more does no harm.
func reachedStill(then, now []byte) bool {
	reached := slices.Collect(slices.Chunk(now, reachMACSize))
	for one := range slices.Chunk(then, reachMACSize) {
		if !slices.ContainsFunc(reached, func(r []byte) bool { return encryption.Equal(r, one) }) {
			return false
		}
	}
	return (len(then) == 0) == (len(now) == 0)
}

// keep writes down the answer, and returns the one that stands: that of another instance, where it was quicker.
func (o *once) keep(ctx context.Context, answer []byte) ([]byte, error) {
	kept, err := o.s.db.AnswerIdempotencyKey(ctx, dbsqlc.AnswerIdempotencyKeyParams{IdempotencyKeyID: o.row.IdempotencyKeyID, WorkspaceID: o.row.WorkspaceID,
		CredentialID: o.row.CredentialID, Operation: o.row.Operation, KeyMac: o.row.KeyMac, RequestMac: o.row.RequestMac,
		AnswerSealed: o.s.keys.Seal(answerPlace(o.row.IdempotencyKeyID), answer)})
	switch {
	case store.IsNoRows(err):
		return answer, nil
	case err != nil:
		return nil, err
	}
	return o.s.keys.Open(answerPlace(o.row.IdempotencyKeyID), kept)
}

// drop gives the key back. When that fails it is held for a while longer.
func (o *once) drop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(store.Apart(context.WithoutCancel(ctx)), keyGivenWithin)
	defer cancel()
	if err := o.s.db.DropIdempotencyKey(ctx, dbsqlc.DropIdempotencyKeyParams{WorkspaceID: o.row.WorkspaceID, IdempotencyKeyID: o.row.IdempotencyKeyID}); err != nil {
		o.s.opt.Log.WarnContext(ctx, "an Idempotency-Key could not be given back", "error", err)
	}
}

// Checkpoint ends the transaction that a request with a key is answered in: for those that go on to wait for others,
// who see what is committed only, or to do what no transaction undoes. What was done so far stands. From attempt the
// answer can be made anew; a zero attempt: while the request is not answered, those that come with its key are refused.
// For requests without a key nothing is done.
func (s *Service) Checkpoint(ctx context.Context, attempt uuid.UUID) error {
	o, _ := ctx.Value(onceKey{}).(*once)
	if o == nil || o.past {
		return nil
	}
	if attempt != uuid.Nil {
		o.row.ActionAttemptID = &attempt
	}
	err := s.db.HoldIdempotencyKey(ctx, dbsqlc.HoldIdempotencyKeyParams{WorkspaceID: o.row.WorkspaceID, IdempotencyKeyID: o.row.IdempotencyKeyID,
		ActionAttemptID: o.row.ActionAttemptID, Hold: keyHeldFor})
	if err == nil {
		err = s.db.CommitOne(ctx)
	}
	if err != nil {
		return fmt.Errorf("write down how far a request has come: %w", err)
	}
	o.past = true
	return nil
}

// RequestName is the name of the request with a key that is being answered, the same each time that it comes: what is done
// outside of the database is told it, to do it once. It is empty for requests without a key.
func RequestName(ctx context.Context) string {
	o, _ := ctx.Value(onceKey{}).(*once)
	if o == nil {
		return ""
	}
	return hex.EncodeToString(o.s.keys.MAC("idempotency_keys.name/"+o.name(), o.asked))
}

// DropOldAnswers forgets the answers of a workspace that no request can ask for any more.
func (s *Service) DropOldAnswers(ctx context.Context, workspace uuid.UUID) error {
	for {
		n, err := s.db.DropOldIdempotencyKeys(ctx, dbsqlc.DropOldIdempotencyKeysParams{WorkspaceID: workspace, Retention: KeyRetention, MaxRows: keyBatch})
		if err != nil {
			return fmt.Errorf("forget old answers of workspace %s: %w", workspace, err)
		}
		if n < keyBatch {
			return nil
		}
	}
}

// Types of errors of Once.
const (
	KeyInUse  = "idempotency_key_in_use"
	KeyReused = "idempotency_key_reused"
)

func keyInUse() *Error {
	return &Error{Kind: Conflict, Type: KeyInUse, Message: "A request with this Idempotency-Key is still being carried out. Send it again, with the same key, to be told how it ended."}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// underWay are the requests with keys that this process is answering. Of those with one key, one at a time takes a
// connection to the database, in the order in which they have come.
type underWay struct {
	mu    sync.Mutex
	names map[string]*line
}

// line is those who wait for one name, and whose it is.
type line struct {
	taken chan struct{} // has one element while a request of the name is being answered
	users int           // that request and those that wait
}

// enter waits, aside, until nobody else answers a request of that name. Whoever enters leaves. It fails with Conflict when that
// takes too long, as aside does, and when ctx ends.
func (u *underWay) enter(ctx context.Context, name string, patience time.Duration, aside func(context.Context, func() error) error) (leave func(), err error) {
	if aside == nil {
		aside = func(_ context.Context, wait func() error) error { return wait() }
	}
	l := u.join(name)
	mine := false
	leave = func() {
		if mine {
			<-l.taken
		}
		u.leave(name, l)
	}
	select {
	case l.taken <- struct{}{}:
		mine = true
		return leave, nil
	default:
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	err = aside(ctx, func() error {
		select {
		case l.taken <- struct{}{}:
			mine = true
			return nil
		case <-enough.C:
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
