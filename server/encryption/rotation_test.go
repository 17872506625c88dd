package encryption_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
)

// ringOfKeys is a database of keys whose clock the test sets.
type ringOfKeys struct {
	*testing.T
	stored encryption.Stored
	all    []*encryption.Keys
}

func newRing(t *testing.T, instances int, names ...string) *ringOfKeys {
	t.Helper()
	r := &ringOfKeys{T: t, stored: encryption.Stored{Now: time.Unix(2_000_000_000, 0)}}
	master := encryption.NewMaster()
	for range instances {
		r.all = append(r.all, keys(t, master))
	}
	data, err := r.all[0].NewDataKey(nil)
	r.must(err)
	data.Current = true
	r.stored.Data = []encryption.DataKey{data}
	r.load()
	for _, name := range names {
		sealed := r.all[0].Seal(encryption.ServerKeyPlace(name), encryption.NewMaster())
		r.stored.Server = append(r.stored.Server, encryption.ServerKey{Name: name, Sealed: sealed})
	}
	r.load()
	return r
}

func (r *ringOfKeys) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *ringOfKeys) load() {
	r.Helper()
	for _, k := range r.all {
		r.must(k.SetSource(r.Context(), func(context.Context) (encryption.Stored, error) { return r.stored, nil }))
	}
}

// replace adds a generation to each server key, without loading it.
func (r *ringOfKeys) replace() {
	r.Helper()
	server := slices.Clone(r.stored.Server)
	for i, s := range server {
		sealed, err := r.all[0].ReplaceServerKey(s, r.stored.Data[0], r.stored.Now)
		r.must(err)
		server[i].Sealed = sealed
	}
	r.stored.Server = server
}

// Hashes of one moment stay comparable while another generation is loaded.
func TestHashes_StableDuringRotation(t *testing.T) {
	t.Parallel()
	r := newRing(t, 1, encryption.HashKeyName)
	k, scope, pin := r.all[0], "device/1", []byte("3141")
	old := k.MAC(scope, pin)
	before := k.HashesFor(old)
	stored := before.Lift(old)
	r.replace()
	r.stored.Now = r.stored.Now.Add(2 * encryption.ServerKeyDelay)
	r.must(k.Reload(t.Context()))
	if got := before.MAC(scope, pin); !bytes.Equal(got, stored) {
		t.Errorf("an equal text has the hash %x, want %x", got, stored)
	}
	newest := k.MAC(scope, pin)
	after := k.HashesFor(old, newest)
	for _, mac := range [][]byte{old, newest, after.MAC(scope, pin)} {
		if got := after.Lift(mac); !bytes.Equal(got, after.Lift(newest)) || bytes.Equal(got, stored) {
			t.Errorf("%x is lifted to %x", mac, got)
		}
	}
}

// A hash is the same secret's in every generation, also for an instance that has not loaded the newest key.
func TestMAC_MatchesAcrossGenerations(t *testing.T) {
	t.Parallel()
	r := newRing(t, 2, encryption.HashKeyName)
	k, stale := r.all[0], r.all[1]
	pin, other, scope := []byte("3141"), []byte("2718"), "device/1"
	index := k.IndexMAC(scope, pin)
	macs := [][]byte{k.MAC(scope, pin)}
	for range 3 {
		before := k.Generation()
		r.replace()
		r.must(k.Reload(t.Context()))
		if k.Generation() != before {
			t.Error("a key is used before every instance has loaded it")
		}
		r.stored.Now = r.stored.Now.Add(encryption.ServerKeyDelay)
		r.must(k.Reload(t.Context()))
		macs = append(macs, k.MAC(scope, pin))
	}
	for i, a := range macs {
		for j, b := range macs {
			if (i == j) != bytes.Equal(a, b) {
				t.Errorf("generations %d and %d: %x, %x", i, j, a, b)
			}
			if !k.Match(a, b) || !stale.Match(a, b) {
				t.Errorf("generations %d and %d do not match", i, j)
			}
		}
		if k.Match(a, k.MAC(scope, other)) || k.Match(k.MAC("device/2", pin), a) {
			t.Errorf("generation %d matches another secret", i)
		}
		if !bytes.Equal(k.Lift(a), macs[3]) || k.Generation() != 3 {
			t.Errorf("generation %d is lifted to %x", i, k.Lift(a))
		}
		mac, rest := encryption.SplitMAC(k.Lift(append(slices.Clone(a), "attached"...)))
		if !bytes.Equal(mac, macs[3]) || string(rest) != "attached" {
			t.Errorf("generation %d loses what is attached: %x %q", i, mac, rest)
		}
	}
	if all := k.MACs(scope, pin); !slices.EqualFunc(all, macs, bytes.Equal) {
		t.Errorf("all hashes: %x, want %x", all, macs)
	}
	if !bytes.Equal(k.IndexMAC(scope, pin), index) {
		t.Error("the hash for an index has changed")
	}
}

// What no key has made is returned unchanged, and matches nothing.
func TestLift_Garbage(t *testing.T) {
	t.Parallel()
	r := newRing(t, 1, encryption.HashKeyName)
	r.replace()
	k := r.all[0]
	r.must(k.Reload(t.Context()))
	for name, mac := range map[string][]byte{
		"empty":             {},
		"short":             []byte("12345678"),
		"shorter":           []byte("1"),
		"unknown key":       append([]byte{200}, bytes.Repeat([]byte{1}, 16)...),
		"newest generation": append([]byte{1}, bytes.Repeat([]byte{1}, 16)...),
	} {
		if got := k.Lift(mac); !bytes.Equal(got, mac) {
			t.Errorf("%s: lifted to %x", name, got)
		}
		if k.Match(mac, k.MAC("p", []byte("x"))) {
			t.Errorf("%s: matches", name)
		}
	}
}

// A new server key is accepted immediately, current when all instances have it, and replaces the old one for a week.
func TestServerKeys_AcceptedForAWeek(t *testing.T) {
	t.Parallel()
	const name = "connect_webviews"
	r := newRing(t, 1, name)
	k := r.all[0]
	at := func(d time.Duration) [][]byte {
		r.stored.Now = r.stored.Now.Add(d)
		r.must(k.Reload(t.Context()))
		return k.ServerKeys(name)
	}
	first := at(0)[0]
	r.replace()
	both := at(time.Second)
	if len(both) != 2 || !bytes.Equal(both[0], first) || bytes.Equal(both[1], first) {
		t.Fatal("right after the rotation, another key than the old one is current, or the new one is not accepted")
	}
	second := both[1]
	if both = at(time.Minute); len(both) != 2 || !bytes.Equal(both[0], second) || !bytes.Equal(both[1], first) {
		t.Error("a minute later, the new key is not current or the old one is not accepted")
	}
	r.replace() // as the same day brings another leak
	if all := at(time.Minute); len(all) != 3 || bytes.Equal(all[0], second) || bytes.Equal(all[0], first) {
		t.Errorf("after two rotations %d keys are accepted", len(all))
	}
	if only := at(
		encryption.ServerKeyTTL,
	); len(only) != 1 || bytes.Equal(only[0], first) ||
		bytes.Equal(only[0], second) {
		t.Errorf("a week later, %d keys are accepted", len(only))
	}
	before := len(r.stored.Server[0].Sealed)
	r.replace()
	if after := len(r.stored.Server[0].Sealed); after >= before {
		t.Errorf("a rotation keeps keys that are not accepted any more: %d bytes, were %d", after, before)
	}
}
