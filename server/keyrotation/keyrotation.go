package keyrotation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// FollowKeys makes keys use the data keys and the server keys of a database. Every instance calls it first. With
// begin, it creates the first data key if there is none.
func FollowKeys(ctx context.Context, db *store.DB, keys *encryption.Keys, begin bool) error {
	if err := keys.SetSource(
		ctx,
		func(ctx context.Context) (encryption.Stored, error) { return storedKeys(ctx, db.SideQueries) },
	); err != nil {
		return err
	}
	if begin {
		if err := firstDataKey(ctx, db.SideQueries, keys); err != nil {
			return fmt.Errorf("create the first data key: %w", err)
		}
	}
	return createServerKey(ctx, db.SideQueries, keys, encryption.HashKeyName, keys.FirstHashKey)
}

// firstDataKey creates a data key if there is none. The master key then only wraps data keys. Otherwise an
// instance with a newer master key would seal values that the others cannot open. Concurrent instances create
// one key.
func firstDataKey(ctx context.Context, db *dbsqlc.Queries, keys *encryption.Keys) error {
	switch there, err := db.ListDataKeys(ctx); {
	case err != nil:
		return err
	case len(there) > 0: // perhaps by another instance, since keys were loaded
		return keys.Reload(ctx)
	}
	var fresh encryption.DataKey
	sealed, err := db.GetOldestServerKey(ctx)
	switch {
	case store.IsNoRows(err): // nothing was sealed yet
		fresh, err = keys.NewDataKey(nil)
	case err == nil:
		fresh, err = keys.FirstDataKey(sealed)
	}
	if err == nil {
		err = db.InsertFirstDataKey(
			ctx,
			dbsqlc.InsertFirstDataKeyParams{KeyID: int16(fresh.ID), Wrapped: fresh.Wrapped},
		)
	}
	if err != nil {
		return err
	}
	return keys.Reload(ctx)
}

// CheckKeys fails where keys do not match a database. The schema may be older than this program.
func CheckKeys(ctx context.Context, kept store.KeptKeys, keys *encryption.Keys) error {
	var all encryption.Stored
	for _, d := range kept.Data {
		all.Data = append(all.Data, encryption.DataKey{ID: byte(d.KeyID), Wrapped: d.Wrapped, Current: d.IsCurrent})
	}
	for name, sealed := range kept.Server {
		all.Server = append(all.Server, encryption.ServerKey{Name: name, Sealed: sealed})
	}
	return keys.SetSource(ctx, func(context.Context) (encryption.Stored, error) { return all, nil })
}

// storedKeys reads the server keys first, because a rotation adds data keys before it seals server keys with them.
func storedKeys(ctx context.Context, db *dbsqlc.Queries) (all encryption.Stored, err error) {
	server, err := db.ListServerKeys(ctx)
	if err != nil {
		return all, err
	}
	for _, r := range server {
		all.Now = r.Now
		all.Server = append(all.Server, encryption.ServerKey{Name: r.Name, Sealed: r.Sealed})
	}
	data, err := db.ListDataKeys(ctx)
	for _, r := range data {
		all.Data = append(all.Data, encryption.DataKey{ID: byte(r.KeyID), Wrapped: r.Wrapped, Current: r.IsCurrent})
	}
	return all, err
}

// Rotation is the progress of a rotation of the encryption.
type Rotation struct {
	Resumed bool   // an earlier rotation was interrupted
	Column  string // the column in progress; empty: waiting for other transactions
	Done    int64  // rows sealed again in the column
	Total   int64
	Waiting int64 // other transactions that must end before the rotation can
}

// retiredKeyTTL is how long a retired key is kept, for an instance that was frozen in a transaction. The first
// rotation after that deletes the key.
const retiredKeyTTL = 24 * time.Hour

// RotateEncryption creates a new data key and seals all secrets with it, and new server keys, while any number of
// instances serve. It brings all keyed hashes to the new hash key. Of the other server keys, the old ones are accepted
// for encryption.ServerKeyTTL. It calls tell with the progress. After an interruption the next call continues, unless the master key has
// changed. It fails with Conflict while another rotation runs, and where the schema is newer than this program,
// which would leave unknown columns sealed with the old key. It also fails if a value cannot be opened, and
// leaves it unchanged.
func (s *Service) RotateEncryption(ctx context.Context, tell func(Rotation)) error {
	c, err := s.db.Condition(ctx)
	if err != nil {
		return err
	}
	if newest := store.NewestSchema(); c.Schema > newest {
		return &domain.Error{
			Kind: domain.Conflict,
			Type: "schema_is_newer",
			Message: fmt.Sprintf("The schema of the database has version %d, and this program knows it up to %d: "+
				"it would leave secrets in unknown columns sealed with the retired key. Rotate with the newer "+
				"program.", c.Schema, newest),
		}
	}
	err = s.db.InTxOnce(ctx, func(alone store.Tx) error { // this transaction only holds the lock
		if err := alone.DisableIdleTimeout(ctx); err != nil {
			return err
		}
		if free, err := alone.LockRotation(ctx); err != nil {
			return err
		} else if !free {
			return &domain.Error{
				Kind: domain.Conflict,
				Type: "rotation_under_way",
				Message: "Another rotation of the encryption is under way. The terminal that started it shows " +
					"its progress.",
			}
		}
		return s.rotate(ctx, tell)
	})
	if err != nil {
		return fmt.Errorf("rotate the encryption: %w", err)
	}
	return nil
}

func (s *Service) rotate(ctx context.Context, tell func(Rotation)) error {
	current, resumed, err := s.startRotation(ctx)
	if err != nil {
		return err
	}
	tell(Rotation{Resumed: resumed})
	if err := s.resealAll(ctx, current, tell); err != nil {
		return err
	}
	// Other instances seal with the old key until they reload the keys. They all must know the new hash key before one
	// uses it, and then they reload the keys again.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(encryption.ServerKeyDelay + encryption.RefreshInterval + s.opt.RotationWait):
	}
	if err := s.keys.Reload(ctx); err != nil {
		return err
	}
	// A transaction may write back a value that it read before the value was sealed again.
	for left := int64(1); left > 0; {
		if err := s.resealAll(ctx, current, tell); err != nil {
			return err
		}
		if err := s.awaitTransactions(ctx, tell); err != nil {
			return err
		}
		if left, err = s.countStale(ctx, current); err != nil {
			return err
		}
	}
	if err := s.db.FinishDataKey(ctx, int16(current)); err != nil {
		return err
	}
	if _, err := s.db.DropRetiredDataKeys(ctx, retiredKeyTTL); err != nil {
		return err
	}
	return s.keys.Reload(ctx)
}

// awaitTransactions waits until every transaction that runs now has ended.
func (s *Service) awaitTransactions(ctx context.Context, tell func(Rotation)) error {
	began, err := s.db.Now(ctx)
	if err != nil {
		return err
	}
	for reported := int64(0); ; {
		n, err := s.db.CountTransactionsBefore(ctx, began)
		if err != nil || n == 0 {
			return err
		}
		if n != reported {
			reported = n
			tell(Rotation{Waiting: n})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// countStale counts the values that are not sealed with the current key.
func (s *Service) countStale(ctx context.Context, current byte) (left int64, err error) {
	for _, column := range store.SealedColumns() {
		n, err := s.db.CountSealedByOthers(ctx, column, s.keyOf(column, current))
		if err != nil {
			return 0, err
		}
		left += n
	}
	return left, nil
}

// keyOf returns the key that a rotation brings a column to: the data key, or the generation of the hash key.
func (s *Service) keyOf(column store.SealedColumn, current byte) byte {
	if column.Hashed() {
		return s.keys.Generation()
	}
	return current
}

// renewed returns a value with the current keys.
func (s *Service) renewed(column store.SealedColumn, was store.Sealed) ([]byte, error) {
	if column.Hashed() {
		now := s.keys.Lift(was.Sealed)
		if bytes.Equal(now, was.Sealed) {
			return nil, errors.New("a keyed hash was not made by this server: delete its row or set it to null")
		}
		return now, nil
	}
	plain, err := s.keys.Open(was.Place, was.Sealed)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", was.Place, err)
	}
	return s.keys.Seal(was.Place, plain), nil
}

// startRotation makes a new data key the current one and replaces the server keys, unless an interrupted rotation can
// continue. It wraps
// keys with the current master key. A rotation under an earlier master key does not continue, because a holder
// of that key may have its keys from a dump.
func (s *Service) startRotation(ctx context.Context) (current byte, resumed bool, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		rows, err := tx.ListDataKeys(ctx)
		if err != nil {
			return err
		}
		var taken []byte
		for _, r := range rows {
			d := encryption.DataKey{ID: byte(r.KeyID), Wrapped: r.Wrapped}
			taken = append(taken, d.ID)
			wrapped, changed, err := s.keys.Wrap(d)
			if err != nil {
				return err
			}
			if changed {
				if err := tx.RewrapDataKey(
					ctx,
					dbsqlc.RewrapDataKeyParams{KeyID: r.KeyID, Wrapped: wrapped},
				); err != nil {
					return err
				}
			}
			// A single key is the first one: a rotation leaves its predecessor. The first key may lack the mark of a
			// finished rotation.
			if r.IsCurrent && r.ResealedAt == nil && !changed && len(rows) > 1 {
				current, resumed = d.ID, true
			}
		}
		if resumed {
			return nil
		}
		fresh, err := s.keys.NewDataKey(taken)
		if err != nil {
			return err
		}
		current = fresh.ID
		return errors.Join(
			tx.RetireDataKeys(ctx),
			tx.InsertDataKey(ctx, dbsqlc.InsertDataKeyParams{KeyID: int16(fresh.ID), Wrapped: fresh.Wrapped}),
			s.replaceServerKeys(ctx, tx, fresh),
		)
	})
	if err != nil {
		return 0, false, err
	}
	return current, resumed, s.keys.Reload(ctx)
}

// resealAll seals all columns again until no value is sealed with another key.
func (s *Service) resealAll(ctx context.Context, current byte, tell func(Rotation)) error {
	for _, column := range store.SealedColumns() {
		for {
			key := s.keyOf(column, current)
			left, err := s.db.CountSealedByOthers(ctx, column, key)
			if err != nil {
				return err
			}
			if left == 0 {
				break
			}
			if err := s.reseal(ctx, column, key, left, tell); err != nil {
				return fmt.Errorf("%s: %w", column, err)
			}
		}
	}
	return nil
}

// reseal renews the values of a column that have another key, in one pass.
func (s *Service) reseal(
	ctx context.Context,
	column store.SealedColumn,
	key byte,
	total int64,
	tell func(Rotation),
) error {
	parts, err := s.db.Parts(ctx, column)
	if err != nil {
		return err
	}
	progress := Rotation{Column: column.String(), Total: total}
	for _, part := range parts {
		if err := s.resealPart(ctx, part, key, &progress, tell); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) resealPart(
	ctx context.Context,
	column store.SealedColumn,
	key byte,
	progress *Rotation,
	tell func(Rotation),
) error {
	for block := int64(0); ; {
		was, next, err := s.db.SealedByOthers(ctx, column, key, block)
		if err != nil {
			return err
		}
		now := make([]store.Sealed, len(was))
		for i, w := range was {
			if now[i].Sealed, err = s.renewed(column, w); err != nil {
				return err
			}
		}
		if err := s.db.Reseal(ctx, column, was, now); err != nil {
			return err
		}
		progress.Done += int64(len(was))
		tell(*progress)
		if next == 0 {
			return nil
		}
		block = next
	}
}
