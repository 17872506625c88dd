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

// short are attacks of each sort: on connections, bodies, headers, JSON, answers, turns, and by clouds and endpoints.
const short = "idle connections,bodies,megabytes of headers,deep,nobody reads,waits for one key,device clouds,webhook endpoints"

// Memory is no timing: in each attack its limit holds however busy the machine is, and who is healthy is answered, and has
// codes set. HOSTILE_ONLY chooses attacks by parts of their names; `make abuse` tries each of them alone, takes longer, and compares.
func TestAttacksTakeNeitherMemoryNorHealthyRequests(t *testing.T) {
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
	rows, err := abuse.Run(t.Context(), abuse.Options{Program: program, DSN: storetest.New(t), Dir: dir, Window: time.Second, Endpoints: 10, Only: cmp.Or(os.Getenv("HOSTILE_ONLY"), short), Log: log, Out: lines{t}})
	if err != nil {
		b, _ := os.ReadFile(log.Name())
		t.Fatalf("%v\nthe server's log ends with\n%s", err, b[max(0, len(b)-4000):])
	}
	if len(rows) == 0 {
		t.Error("nothing was tried")
	}
	for _, r := range rows {
		for _, fault := range r.Faults() {
			t.Error(fault)
		}
	}
	for _, r := range rows {
		if r.Confined() && !t.Failed() {
			storetest.Missing(t, "a limit of open files that leaves room for the connections of %q: %d, not %d", r.Name, r.Wanted, r.Room)
		}
	}
}

// lines are what goes on, in the log of a test.
type lines struct{ testing.TB }

func (l lines) Write(b []byte) (int, error) {
	l.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}
