package abuse_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/abuse"
)

func TestMain(m *testing.M) {
	abuse.Main()
	storetest.Main(m, store.Migrate, store.MigrationsVersion())
}

// short are scenarios of each kind: connections, bodies, headers, JSON, responses, slots, clouds, and endpoints.
const short = "idle connections,bodies,megabytes of headers,deep,never read,waits for one key,visitors,device " +
	"clouds,webhook endpoints"

// The memory limit holds in each attack, even on a busy machine, and healthy clients get responses and codes.
// HOSTILE_ONLY selects scenarios by parts of their names. `make abuse` runs each of them alone, takes longer, and
// compares.
func TestAttacks_MemoryAndHealthyRequests(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	dir := t.TempDir()
	program, err := abuse.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	rows, err := abuse.Run(t.Context(), abuse.Options{
		Program:   program,
		DSN:       storetest.New(t),
		Dir:       dir,
		Window:    time.Second,
		Endpoints: 10,
		Only:      cmp.Or(os.Getenv("HOSTILE_ONLY"), short),
		Log:       log,
		Out:       lines{t},
	})
	if err != nil {
		b, _ := os.ReadFile(log.Name())
		t.Fatalf("%v\nthe end of the server's log:\n%s", err, b[max(0, len(b)-4000):])
	}
	if len(rows) == 0 {
		t.Error("no scenario has run")
	}
	for _, r := range rows {
		for _, fault := range r.Faults() {
			t.Error(fault)
		}
	}
	for _, r := range rows {
		if r.Confined() && !t.Failed() {
			storetest.Missing(
				t,
				"a limit of open files that leaves room for the connections of %q: %d, not %d",
				r.Name,
				r.Wanted,
				r.Room,
			)
		}
	}
}

// lines writes progress to the log of a test.
type lines struct{ testing.TB }

func (l lines) Write(b []byte) (int, error) {
	l.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}
