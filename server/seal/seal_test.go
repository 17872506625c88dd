package seal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/seal"
)

func keys(t *testing.T, masters ...[]byte) *seal.Keys {
	t.Helper()
	k, err := seal.New(masters...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealedOpensOnlyWhereItBelongs(t *testing.T) {
	t.Parallel()
	master := seal.NewMaster()
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
		"another key":   func() ([]byte, error) { return keys(t, seal.NewMaster()).Open("codes/1", sealed) },
		"changed":       func() ([]byte, error) { return k.Open("codes/1", changed) },
		"empty":         func() ([]byte, error) { return k.Open("codes/1", nil) },
		"one byte":      func() ([]byte, error) { return k.Open("codes/1", sealed[:1]) },
	} {
		if _, err := open(); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnEarlierMasterKeyStillOpens(t *testing.T) {
	t.Parallel()
	old, recent := bytes.Repeat([]byte{1}, seal.KeySize), bytes.Repeat([]byte{2}, seal.KeySize)
	both := keys(t, recent, old)
	sealed := keys(t, old).Seal("p", []byte("x"))
	if plain, err := both.Open("p", sealed); err != nil || string(plain) != "x" {
		t.Fatalf("opened %q, %v", plain, err)
	}
	if _, err := keys(t, old).Open("p", both.Seal("p", []byte("x"))); err == nil {
		t.Fatal("sealed with the earlier key")
	}
}

func TestMACTellsEqualFromUnequal(t *testing.T) {
	t.Parallel()
	k := keys(t, seal.NewMaster())
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
		if seal.Equal(a, c.other) != c.equal {
			t.Errorf("%s: equal %v", name, !c.equal)
		}
	}
	if seal.Equal(nil, nil) {
		t.Error("two missing hashes are equal")
	}
}

func TestKeyFileIsMadeOnceAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub", "master.key")
	got := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = seal.File(path); err != nil {
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
	if _, err := seal.File(path); err == nil {
		t.Fatal("a damaged key file was accepted")
	}
}
