package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// A copy of this test binary that is told so by helperRoot is another test process: it starts a cluster
// there, says where, and lives until it is killed.
const (
	helperRoot  = "STORETEST_HELPER_ROOT"
	helperCache = "STORETEST_HELPER_CACHE"
)

// Help is whether this process is such a helper, and has done its work.
func Help() bool {
	root := os.Getenv(helperRoot)
	if root == "" {
		return false
	}
	c, err := startCluster(context.Background(), root, template{cache: os.Getenv(helperCache), migrate: nothing}, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.run.path)
	select {}
}

func nothing(context.Context, string) error { return nil }

// tempRoot is in memory where there is some, and can be entered by the server's user.
func tempRoot(t *testing.T) string {
	t.Helper()
	root, err := os.MkdirTemp(scratchRoot(), "storetest-")
	if err == nil {
		err = os.Chmod(root, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	return root
}

func needBinaries(t *testing.T) {
	t.Helper()
	NeedPostgres(t)
	if _, err := pglocal.Locate(t.Context(), pglocal.Options{}); errors.Is(err, pglocal.ErrNoBinaries) {
		Missing(t, "%v", err)
	}
}

func TestTemplateIsMadeOnceForAllProcesses(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	var migrated atomic.Int32
	root, cache := tempRoot(t), t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			c, err := startCluster(
				t.Context(),
				root,
				template{cache: cache, version: "1", migrate: func(context.Context, string) error {
					migrated.Add(1)
					return nil
				}},
				nil,
			)
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(c.create(t.Context(), "a"), c.stop(context.Background())); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := migrated.Load(); n != 1 {
		t.Errorf("the migrations ran %d times, want once", n)
	}
	if left := entries(t, root); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestFailedMigrationIsToldAndNotKept(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	broken := errors.New("broken")
	root, cache := tempRoot(t), t.TempDir()
	_, err := startCluster(
		t.Context(),
		root,
		template{cache: cache, migrate: func(context.Context, string) error { return broken }},
		nil,
	)
	if !errors.Is(err, broken) {
		t.Errorf("startCluster = %v, want the error of the migration", err)
	}
	if left := append(entries(t, root), entries(t, cache)...); len(left) != 1 || left[0] != "lock" {
		t.Errorf("left behind: %q, want the lock only", left)
	}
}

func TestNewVersionIsAnotherTemplate(t *testing.T) {
	t.Parallel()
	bin := pglocal.Binaries{Dir: "/bin", Version: "15.1", Major: 15}
	newer := pglocal.Binaries{Dir: "/bin", Version: "15.2", Major: 15}
	names := map[string]bool{
		template{version: "1"}.archive(bin):   true,
		template{version: "2"}.archive(bin):   true,
		template{version: "1"}.archive(newer): true,
	}
	if len(names) != 3 {
		t.Errorf("archives are named %v, want three names", names)
	}
}

func TestPruneKeepsTheLatestUsed(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	for age := range maxTemplates + 2 {
		name := filepath.Join(cache, fmt.Sprintf("%d.tar", age))
		used := time.Now().Add(-time.Duration(age) * time.Hour)
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chtimes(name, used, used)); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(cache); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(entries(t, cache), " "); got != "0.tar 1.tar 2.tar 3.tar" {
		t.Errorf("kept %s, want the four youngest", got)
	}
}

func TestSweepRemovesWhatKilledProcessesLeft(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	root := tempRoot(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command(exe)
	other.Env = append(os.Environ(), helperRoot+"="+root, helperCache+"="+t.TempDir())
	other.Stderr = os.Stderr
	out, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	path := strings.TrimSpace(line)
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	if err != nil {
		t.Fatalf("the other process: %v", err)
	}

	sweep(t.Context(), root)
	if _, err := os.Stat(filepath.Join(path, "cluster")); err != nil {
		t.Fatalf("the folder of a process that lives was removed: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // says that it was killed
	sweep(t.Context(), root)
	if left := entries(t, root); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestSweepLeavesAloneWhatIsJustBeingMade(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	long := time.Now().Add(-2 * unclaimedAge)
	for name, changed := range map[string]time.Time{runPrefix + "young": time.Now(), runPrefix + "old": long, "not-ours": long} {
		dir := filepath.Join(root, name)
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chtimes(dir, changed, changed)); err != nil {
			t.Fatal(err)
		}
	}
	sweep(t.Context(), root)
	if got := strings.Join(entries(t, root), " "); got != "da-test-young not-ours" {
		t.Errorf("kept %s, want the young and what is not ours", got)
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}
