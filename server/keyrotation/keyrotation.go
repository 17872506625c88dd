package keyrotation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// hashKeyName is the server key for keyed hashes. PINs are compared by their hashes, so this key stays when the
// encryption keys are rotated.
const hashKeyName = "hashes"

// FollowKeys makes keys use the data keys and the hash key of a database. Every instance calls it first. With
// begin, it creates the first data key if there is none.
func FollowKeys(ctx context.Context, db *store.DB, keys *encryption.Keys, begin bool) error {
	if err := keys.SetSource(
		ctx,
		func(ctx context.Context) ([]encryption.DataKey, error) { return dataKeys(ctx, db.SideQueries) },
	); err != nil {
		return err
	}
	if begin {
		if err := firstDataKey(ctx, db.SideQueries, keys); err != nil {
			return fmt.Errorf("create the first data key: %w", err)
		}
	}
	hash, err := serverKey(ctx, db.SideQueries, keys, hashKeyName, keys.HashKey)
	if err != nil {
		return err
	}
	keys.SetHashKey(hash)
	return nil
}

// firstDataKey creates a data key if there is none. The master key then only wraps data keys. Otherwise an
// instance with a newer master key would seal values that the others cannot open. Concurrent instances create
// one key.
func firstDataKey(ctx context.Context, db *dbsqlc.Queries, keys *encryption.Keys) error {
	if there, err := db.ListDataKeys(ctx); err != nil || len(there) > 0 {
		return err
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
	data := make([]encryption.DataKey, len(kept.Data))
	for i, d := range kept.Data {
		data[i] = encryption.DataKey{ID: byte(d.KeyID), Wrapped: d.Wrapped, Current: d.IsCurrent}
	}
	if err := keys.SetSource(
		ctx,
		func(context.Context) ([]encryption.DataKey, error) { return data, nil },
	); err != nil {
		return err
	}
	for name, sealed := range kept.Server {
		if _, err := openServerKey(keys, name, sealed); err != nil {
			return err
		}
	}
	return nil
}

func dataKeys(ctx context.Context, db *dbsqlc.Queries) ([]encryption.DataKey, error) {
	rows, err := db.ListDataKeys(ctx)
	out := make([]encryption.DataKey, len(rows))
	for i, r := range rows {
		out[i] = encryption.DataKey{ID: byte(r.KeyID), Wrapped: r.Wrapped, Current: r.IsCurrent}
	}
	return out, err
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

// RotateEncryption creates a new data key and seals all secrets with it, while any number of instances serve.
// It calls tell with the progress. After an interruption the next call continues, unless the master key has
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
	// Other instances seal with the old key until they reload the keys.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(encryption.RefreshInterval + s.opt.RotationWait):
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
	began, err := s.db.Moment(ctx)
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
		n, err := s.db.CountSealedByOthers(ctx, column, current)
		if err != nil {
			return 0, err
		}
		left += n
	}
	return left, nil
}

// startRotation makes a new data key the current one, unless an interrupted rotation can continue. It wraps
// keys with the current master key. A rotation under an earlier master key does not continue, because a holder
// of that key may have its data key from a dump.
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
			left, err := s.db.CountSealedByOthers(ctx, column, current)
			if err != nil {
				return err
			}
			if left == 0 {
				break
			}
			if err := s.reseal(ctx, column, current, left, tell); err != nil {
				return fmt.Errorf("%s: %w", column, err)
			}
		}
	}
	return nil
}

// reseal seals the values of a column again, in one pass.
func (s *Service) reseal(
	ctx context.Context,
	column store.SealedColumn,
	current byte,
	total int64,
	tell func(Rotation),
) error {
	parts, err := s.db.Parts(ctx, column)
	if err != nil {
		return err
	}
	progress := Rotation{Column: column.String(), Total: total}
	for _, part := range parts {
		if err := s.resealPart(ctx, part, current, &progress, tell); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) resealPart(
	ctx context.Context,
	column store.SealedColumn,
	current byte,
	progress *Rotation,
	tell func(Rotation),
) error {
	for block := int64(0); ; {
		was, next, err := s.db.SealedByOthers(ctx, column, current, block)
		if err != nil {
			return err
		}
		now := make([]store.Sealed, len(was))
		for i, w := range was {
			plain, err := s.keys.Open(w.Place, w.Sealed)
			if err != nil {
				return fmt.Errorf("open %s: %w", w.Place, err)
			}
			now[i].Sealed = s.keys.Seal(w.Place, plain)
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
