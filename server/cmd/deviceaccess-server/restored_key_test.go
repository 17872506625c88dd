package main

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
)

// A master key that was changed after a backup is of no use to it: one that holds its key brings that back, and one without its key says
// which is needed.
func TestABackupOfBeforeTheMasterKeyWasChangedNeedsTheEarlierOne(t *testing.T) {
	t.Parallel()
	b := backedUp(t)
	p := newEmpty(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	p.copy(b.data, at("data"))
	key := func(dir string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(at(dir), "master.key"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	put := func(dir, content string) {
		t.Helper()
		if err := os.MkdirAll(at(dir), 0o755); err == nil {
			err = os.WriteFile(filepath.Join(at(dir), "master.key"), []byte(content+"\n"), 0o600)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	earlier := b.key
	old, err := encryption.Parse(earlier)
	if err != nil {
		t.Fatal(err)
	}
	var newer string
	for err := errors.New("none yet"); err != nil; { // one in 256 has the identifier of the earlier one
		another := encryption.NewMaster()
		newer = base64.StdEncoding.EncodeToString(another)
		_, err = encryption.New(old[0], another)
	}
	put("data", newer+"\n"+earlier)
	p.ok("keys", "rotate-encryption")

	p.ok("restore", "--data-dir", at("with"), b.with)
	if key("with") != earlier {
		t.Error("the key in the backup does not come back")
	}
	put("newer", newer)
	for file, want := range map[string]string{b.with: "another master key than the backup's", b.withoutKey: "If the key was changed after the backup, use the earlier key"} {
		if _, err := p.run("restore", "--data-dir", at("newer"), file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s with the newer key: %v", file, err)
		}
	}
	put("both", newer+"\n"+earlier)
	p.ok("restore", "--data-dir", at("both"), b.withoutKey)
}
