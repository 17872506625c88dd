package storetest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

// Dir creates a directory that other users can enter, in memory if the tests' cluster is in memory. It is removed after the
// last test of the process. It may be mounted noexec, so programs do not belong there.
func Dir(t testing.TB) string {
	t.Helper()
	NeedPostgres(t)
	if clusterOnce == nil {
		t.Fatal("storetest.Dir: the package's TestMain has to call storetest.Main")
	}
	c, err := clusterOnce()
	if errors.Is(err, pglocal.ErrNoBinaries) {
		Missing(t, "%v", err)
	}
	if err != nil {
		t.Fatalf("start a database for the tests: %v", err)
	}
	dir, err := c.makeDir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (c *cluster) makeDir() (string, error) {
	dir, err := os.MkdirTemp(c.run.path, "dir-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the test: %w", err)
	}
	return dir, os.Chmod(dir, 0o755)
}
