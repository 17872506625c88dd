package chaos_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// upgrade is an upgrade from the version of a commit to the tested one.
type upgrade struct {
	commit        string
	older, newer  string // programs
	schema, added int    // migrations of the older version, and those that the newer one added while others ran
	mixed         int    // requests answered while both versions ran
}

const root = "../.."

// initialSchema is the migration that the older version must have as well.
const initialSchema = "server/store/migrations/00001_initial.sql"

// newUpgrade builds the older program from the commit in CHAOS_FROM. It returns nil without CHAOS_FROM.
func newUpgrade(t testing.TB, newer string) *upgrade {
	t.Helper()
	commit := os.Getenv("CHAOS_FROM")
	if commit == "" {
		return nil
	}
	tell := func(name string, args ...string) string {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("the version to upgrade from, %s: %s: %v\n%s", commit, name, err, stderr.Bytes())
		}
		return strings.TrimSpace(string(out))
	}
	u := &upgrade{newer: newer, commit: tell("git", "-C", root, "rev-parse", "--verify", "--short", commit+"^{commit}")}
	schema, err := os.ReadFile(filepath.Join(root, initialSchema))
	if err != nil {
		t.Fatal(err)
	}
	if tell("git", "-C", root, "show", u.commit+":"+initialSchema) != strings.TrimSpace(string(schema)) {
		t.Fatalf("commit %s has another initial schema: there is no upgrade from it", u.commit)
	}
	dir := t.TempDir() // an archive instead of a worktree, which git would track
	archive := filepath.Join(t.TempDir(), "older.tar")
	tell("git", "-C", root, "archive", "--format=tar", "--output="+archive, u.commit)
	tell("tar", "-xf", archive, "-C", dir)
	u.older = buildIn(t, dir)
	return u
}

// become sets the program of the next process of an instance.
func (i *instance) become(program string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.args[0] = program
}

// migrations returns the schema version of the database.
func (s *storm) migrations() (n int) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), "select count(*) from goose_db_version where is_applied and version_id > 0").
		Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// allWell waits until every server receives requests.
func (s *storm) allWell(what string) {
	s.Helper()
	for _, i := range s.instances {
		until(s, what, func() bool { return s.balancer.has(i.addr) })
	}
}

// upgrade upgrades servers one after another. The first one migrates. Then a server of the older version starts again,
// like under a supervisor, and finds a newer schema.
func (r *rolling) upgrade(s *storm, u *upgrade) (restarts int) {
	s.Helper()
	u.schema = s.migrations()
	for n, i := range s.instances {
		if n == 1 {
			r.restart(s, i)
			s.allWell("a server of the older version works with the newer schema")
			restarts++
		}
		if n == len(s.instances)-1 {
			r.goOn(s)
			u.mixed += r.total()
		}
		i.become(u.newer)
		r.restart(s, i)
		restarts++
		if n == 0 {
			u.added, u.mixed = s.migrations()-u.schema, -r.total()
		}
		s.allWell("servers of both versions are well")
	}
	if has, err := store.SchemaVersion(s.Context(), s.database.dsn()); err != nil || has != store.NewestSchema() {
		s.Errorf("the schema is %d after an upgrade to %d: %v", has, store.NewestSchema(), err)
	}
	s.program = u.newer
	return restarts
}

// nothingIsLeft checks that each version completed what the other began: no work is left, no lock holds a deleted code,
// and each event has arrived. Failures behind the requests are retried and logged, and no client notices them. It
// returns the number of events.
func (s *storm) nothingIsLeft(devices []string) int {
	s.Helper()
	s.settle()
	for _, d := range devices {
		if now := s.memory(d); !slices.Equal(now, s.found[d]) {
			s.Errorf("%s holds %d codes, and held %d before", d, len(now), len(s.found[d]))
		}
	}
	events := s.events()
	if missing := s.receiver.missing(events); len(missing) > 0 {
		s.Errorf("of %d events, %d deliveries have not arrived", len(events), len(missing))
	}
	for _, i := range s.instances {
		log, err := os.ReadFile(i.log.Name())
		if err != nil {
			s.Fatal(err)
		}
		for line := range bytes.Lines(log) {
			if bytes.Contains(line, []byte("level=ERROR")) {
				s.Errorf("a server says: %s", line)
			}
		}
	}
	return len(events)
}
