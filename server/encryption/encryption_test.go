package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
)

func keys(t *testing.T, masters ...[]byte) *encryption.Keys {
	t.Helper()
	k, err := encryption.New(masters...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestOpen_OnlyForItsPlaceAndKey(t *testing.T) {
	t.Parallel()
	master := encryption.NewMaster()
	k := keys(t, master)
	sealed := k.Seal("codes/1", []byte("1234"))
	if bytes.Contains(sealed, []byte("1234")) {
		t.Fatal("the secret is readable")
	}
	if plain, err := k.Open("codes/1", sealed); err != nil || string(plain) != "1234" {
		t.Fatalf("opened %q, %v", plain, err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another place": func() ([]byte, error) { return k.Open("codes/2", sealed) },
		"another key":   func() ([]byte, error) { return keys(t, encryption.NewMaster()).Open("codes/1", sealed) },
		"changed":       func() ([]byte, error) { return k.Open("codes/1", changed) },
		"empty":         func() ([]byte, error) { return k.Open("codes/1", nil) },
		"one byte":      func() ([]byte, error) { return k.Open("codes/1", sealed[:1]) },
	} {
		if _, err := open(); !errors.Is(err, encryption.ErrDecrypt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEarlierMasterKeyStillOpens(t *testing.T) {
	t.Parallel()
	old, recent := bytes.Repeat([]byte{1}, encryption.KeySize), bytes.Repeat([]byte{2}, encryption.KeySize)
	both := keys(t, recent, old)
	sealed := keys(t, old).Seal("p", []byte("x"))
	if plain, err := both.Open("p", sealed); err != nil || string(plain) != "x" {
		t.Fatalf("opened %q, %v", plain, err)
	}
	if _, err := keys(t, old).Open("p", both.Seal("p", []byte("x"))); err == nil {
		t.Fatal("sealed with the earlier key")
	}
}

func TestMAC_EqualAndUnequal(t *testing.T) {
	t.Parallel()
	k := keys(t, encryption.NewMaster())
	a := k.MAC("device/1", []byte("1234"))
	for name, c := range map[string]struct {
		other []byte
		equal bool
	}{
		"same":          {k.MAC("device/1", []byte("1234")), true},
		"other secret":  {k.MAC("device/1", []byte("1235")), false},
		"other scope":   {k.MAC("device/2", []byte("1234")), false},
		"shifted scope": {k.MAC("device/11", []byte("234")), false},
		"none":          {nil, false},
	} {
		if k.Match(a, c.other) != c.equal || k.Match(c.other, a) != c.equal {
			t.Errorf("%s: equal %v", name, !c.equal)
		}
	}
	if k.Match(nil, nil) || encryption.Equal(nil, nil) {
		t.Error("two missing hashes are equal")
	}
}

func TestKeyFile_CreatedOnceAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub", "master.key")
	got := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			if read, err := encryption.ReadOrCreateFile(path); err == nil {
				got[i] = read[0]
			} else {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range got {
		if !bytes.Equal(k, got[0]) {
			t.Fatal("two programs have different keys")
		}
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", st.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := encryption.ReadOrCreateFile(path); err == nil {
		t.Fatal("a damaged key file was accepted")
	}
}

func TestKeyFile_OfEveryoneIsRefused(t *testing.T) {
	t.Parallel()
	for mode, refused := range map[os.FileMode]bool{
		0o400: false, 0o600: false, 0o640: false, 0o660: false, // a group is the choice of its operator
		0o644: true, 0o604: true, 0o602: true, 0o606: true, 0o666: true, 0o444: true,
	} {
		path := filepath.Join(t.TempDir(), "master.key")
		if _, err := encryption.ReadOrCreateFile(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		keys, err := encryption.ReadFile(path)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "`chmod 600 "+path+"`") {
			t.Errorf("mode %04o: %d keys, %v", mode, len(keys), err)
		}
	}
}

func TestDataKeysSealOnceTheyAreCurrent(t *testing.T) {
	t.Parallel()
	master := encryption.NewMaster()
	var kept []encryption.DataKey
	var reads int
	source := func(context.Context) (encryption.Stored, error) { reads++; return encryption.Stored{Data: kept}, nil }
	one, other := keys(t, master), keys(t, master)
	for _, k := range []*encryption.Keys{one, other} {
		if err := k.SetSource(t.Context(), source); err != nil {
			t.Fatal(err)
		}
	}
	old := one.Seal("p", []byte("x"))
	fresh, err := one.NewDataKey([]byte{1, 2})
	if err != nil || fresh.ID == 1 || fresh.ID == 2 {
		t.Fatalf("%d, %v", fresh.ID, err)
	}
	fresh.Current = true
	kept = append(kept, fresh)
	if err := one.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	sealed := one.Seal("p", []byte("y"))
	if encryption.SealedBy(sealed) != fresh.ID || encryption.SealedBy(old) == fresh.ID {
		t.Errorf("sealed by %d, earlier by %d", encryption.SealedBy(sealed), encryption.SealedBy(old))
	}
	before := reads
	// the other instance has not loaded the key yet
	for text, s := range map[string][]byte{"x": old, "y": sealed} {
		if plain, err := other.Open("p", s); err != nil || string(plain) != text {
			t.Errorf("%q, %v", plain, err)
		}
	}
	if reads != before+1 {
		t.Errorf("the keys were read %d times", reads-before)
	}
	if _, err := other.Open("elsewhere", sealed); !errors.Is(err, encryption.ErrDecrypt) {
		t.Errorf("for another place: %v", err)
	}
	if err := keys(
		t,
		encryption.NewMaster(),
	).SetSource(t.Context(), source); err == nil ||
		!strings.Contains(err.Error(), "is the master key the one") {
		t.Errorf("with another master key: %v", err)
	}
}

func TestKeys_UsableWhileSourceFails(t *testing.T) {
	t.Parallel()
	k := keys(t, encryption.NewMaster())
	broken := errors.New("broken")
	var fail error
	if err := k.SetSource(
		t.Context(),
		func(context.Context) (encryption.Stored, error) { return encryption.Stored{}, fail },
	); err != nil {
		t.Fatal(err)
	}
	sealed := k.Seal("p", []byte("x"))
	fail = broken
	if _, err := k.Open("p", append([]byte{sealed[0] + 1}, sealed[1:]...)); !errors.Is(err, encryption.ErrDecrypt) {
		t.Errorf("an unknown key: %v", err)
	}
	if plain, err := k.Open("p", k.Seal("p", []byte("y"))); err != nil || string(plain) != "y" {
		t.Errorf("%q, %v", plain, err)
	}
}

// The caller of Seal may hold locks that a load needs.
func TestRefreshLoop_SealDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var kept atomic.Pointer[[]encryption.DataKey]
		kept.Store(&[]encryption.DataKey{})
		var stuck atomic.Bool
		k := keys(t, encryption.NewMaster())
		err := k.SetSource(t.Context(), func(ctx context.Context) (encryption.Stored, error) {
			if stuck.Load() {
				<-ctx.Done()
				return encryption.Stored{}, ctx.Err()
			}
			return encryption.Stored{Data: *kept.Load()}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go k.RefreshLoop(ctx)
		stuck.Store(true)
		begun := time.Now()
		time.Sleep(10 * encryption.RefreshInterval)
		for range 100 {
			k.Seal("p", []byte("x"))
			time.Sleep(encryption.RefreshInterval / 50)
		}
		if took := time.Since(begun); took != 12*encryption.RefreshInterval {
			t.Errorf("sealing was delayed by %s", took-12*encryption.RefreshInterval)
		}
		fresh, err := k.NewDataKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		fresh.Current = true
		kept.Store(&[]encryption.DataKey{fresh})
		stuck.Store(false)
		time.Sleep(encryption.RefreshInterval)
		if by := encryption.SealedBy(k.Seal("p", []byte("y"))); by != fresh.ID {
			t.Errorf("sealed by %d, want %d", by, fresh.ID)
		}
	})
}
