package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// hashKeyName is the server key that keyed hashes are made with: PINs are compared by them, so it stays while the keys
// that secrets are sealed with change.
const hashKeyName = "hashes"

// FollowKeys has the keys be those of a database: its data keys, and its key for hashes. Every instance does so before
// it does anything else. One that may begin makes a data key where there is none.
func FollowKeys(ctx context.Context, db *store.DB, keys *encryption.Keys, begin bool) error {
	if err := keys.Follow(ctx, func(ctx context.Context) ([]encryption.DataKey, error) { return dataKeys(ctx, db.Beside) }); err != nil {
		return err
	}
	if begin {
		if err := firstDataKey(ctx, db.Beside, keys); err != nil {
			return fmt.Errorf("make the first data key: %w", err)
		}
	}
	hash, err := serverKey(ctx, db.Beside, keys, hashKeyName, keys.HashKey)
	if err != nil {
		return err
	}
	keys.HashWith(hash)
	return nil
}

// firstDataKey makes a data key where there is none. The master key only wraps from then on: were it to seal, an instance that has
// been given a newer one would seal what the others cannot open. Of several instances at once one makes it.
func firstDataKey(ctx context.Context, db *dbsqlc.Queries, keys *encryption.Keys) error {
	if there, err := db.ListDataKeys(ctx); err != nil || len(there) > 0 {
		return err
	}
	var fresh encryption.DataKey
	sealed, err := db.GetOldestServerKey(ctx)
	switch {
	case store.IsNoRows(err): // nothing is sealed yet
		fresh, err = keys.NewDataKey(nil)
	case err == nil:
		fresh, err = keys.FirstDataKey(sealed)
	}
	if err == nil {
		err = db.InsertFirstDataKey(ctx, dbsqlc.InsertFirstDataKeyParams{KeyID: int16(fresh.ID), Wrapped: fresh.Wrapped})
	}
	if err != nil {
		return err
	}
	return keys.Reread(ctx)
}

// CheckKeys fails when the keys are not those of a database, whose schema may be an older one.
func CheckKeys(ctx context.Context, kept store.KeptKeys, keys *encryption.Keys) error {
	data := make([]encryption.DataKey, len(kept.Data))
	for i, d := range kept.Data {
		data[i] = encryption.DataKey{ID: byte(d.KeyID), Wrapped: d.Wrapped, Current: d.IsCurrent}
	}
	if err := keys.Follow(ctx, func(context.Context) ([]encryption.DataKey, error) { return data, nil }); err != nil {
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

// Rotation is how far a rotation of the encryption has come.
type Rotation struct {
	Resumed bool   // an earlier one had not come to its end
	Column  string // that is being sealed anew; empty: the others are waited for
	Done    int64  // rows of it
	Total   int64
	Waiting int64 // transactions of others that are waited for, once that is all that is left
}

// retiredFor is how long a key stays that nothing is sealed with any more: for an instance that was frozen in the middle
// of a transaction. It goes with the first rotation after that.
const retiredFor = 24 * time.Hour

// RotateEncryption makes a new data key and seals with it what others have sealed, while any number of instances
// serve; tell hears of the progress. One that was stopped in the middle is gone on with by the next call, unless the master
// key has changed since. It fails with Conflict while another is under way, or where the schema is newer than this program, which would
// leave what it does not know sealed with a key that goes; and when something cannot be opened, which it leaves as it is.
func (s *Service) RotateEncryption(ctx context.Context, tell func(Rotation)) error {
	c, err := s.db.Condition(ctx)
	if err != nil {
		return err
	}
	if newest := store.NewestSchema(); c.Schema > newest {
		return &Error{Kind: Conflict, Type: "schema_is_newer", Message: fmt.Sprintf("The schema of the database has version %d, and this program knows it up to %d: "+
			"it would leave secrets that it does not know of sealed with the key that is retired. Rotate with the newer program.", c.Schema, newest)}
	}
	err = s.db.InTxOnce(ctx, func(alone store.Tx) error { // it holds the lock, and nothing else
		if err := alone.MayStandStill(ctx); err != nil {
			return err
		}
		if free, err := alone.LockRotation(ctx); err != nil {
			return err
		} else if !free {
			return &Error{Kind: Conflict, Type: "rotation_under_way", Message: "Another rotation of the encryption is under way; it is told where it was started."}
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
	// Until they have seen the new key, other instances seal with the one before.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(encryption.Refresh + s.opt.RotationPause):
	}
	// What somebody has read before it was sealed anew he may write back.
	for left := int64(1); left > 0; {
		if err := s.resealAll(ctx, current, tell); err != nil {
			return err
		}
		if err := s.awaitOthers(ctx, tell); err != nil {
			return err
		}
		if left, err = s.sealedByOthers(ctx, current); err != nil {
			return err
		}
	}
	if err := s.db.FinishDataKey(ctx, int16(current)); err != nil {
		return err
	}
	if _, err := s.db.DropRetiredDataKeys(ctx, retiredFor); err != nil {
		return err
	}
	return s.keys.Reread(ctx)
}

// awaitOthers waits until every transaction is over that is under way now.
func (s *Service) awaitOthers(ctx context.Context, tell func(Rotation)) error {
	began, err := s.db.Moment(ctx)
	if err != nil {
		return err
	}
	for told := int64(0); ; {
		n, err := s.db.UnderWay(ctx, began)
		if err != nil || n == 0 {
			return err
		}
		if n != told {
			told = n
			tell(Rotation{Waiting: n})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// sealedByOthers counts what another key than the current one has sealed.
func (s *Service) sealedByOthers(ctx context.Context, current byte) (left int64, err error) {
	for _, column := range store.SealedColumns() {
		n, err := s.db.CountSealedByOthers(ctx, column, current)
		if err != nil {
			return 0, err
		}
		left += n
	}
	return left, nil
}

// startRotation makes a data key the current one, unless there is one whose rotation has not come to its end. Keys that
// an earlier master key has wrapped are wrapped anew. Whoever has that master key may have the current one with it, from a
// dump: that is no key to go on with.
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
				if err := tx.RewrapDataKey(ctx, dbsqlc.RewrapDataKeyParams{KeyID: r.KeyID, Wrapped: wrapped}); err != nil {
					return err
				}
			}
			// One by itself is the first: a rotation leaves the one before it. Earlier versions did not mark that one as done.
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
		return errors.Join(tx.RetireDataKeys(ctx), tx.InsertDataKey(ctx, dbsqlc.InsertDataKeyParams{KeyID: int16(fresh.ID), Wrapped: fresh.Wrapped}))
	})
	if err != nil {
		return 0, false, err
	}
	return current, resumed, s.keys.Reread(ctx)
}

// resealAll goes through all sealed columns until nothing is left that another key has sealed.
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

// reseal goes through a column once.
func (s *Service) reseal(ctx context.Context, column store.SealedColumn, current byte, total int64, tell func(Rotation)) error {
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

func (s *Service) resealPart(ctx context.Context, column store.SealedColumn, current byte, progress *Rotation, tell func(Rotation)) error {
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
