package app_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// tool runs a program of PostgreSQL.
func (o *old) tool(name string, args ...string) {
	o.Helper()
	bin, err := pglocal.Locate(o.Context(), pglocal.Options{})
	o.must(err)
	path := filepath.Join(bin.Dir, name)
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath(name); err != nil {
			storetest.Missing(o, "%s: install PostgreSQL", name)
		}
	}
	if out, err := exec.CommandContext(o.Context(), path, args...).CombinedOutput(); err != nil {
		o.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// newAccount connects an account by command while no server runs, which leaves a job for the next one.
func (o *old) newAccount() {
	o.Helper()
	c, log := app.Database{
		DatabaseURL: o.dsn,
		DataDir:     o.TempDir(),
		MasterKey:   base64.StdEncoding.EncodeToString(o.master),
	}, slog.New(
		slog.DiscardHandler,
	)
	o.must(app.Migrate(o.Context(), c, log)) // creates the tables of the job queue
	admin, err := app.OpenAdmin(o.Context(), c, log)
	o.must(err)
	config, err := json.Marshal(map[string]any{"key": "new", "profiles": []string{"yale"}})
	o.must(err)
	_, err = admin.Access.Accounts.ConnectAccount(
		o.Context(),
		account.NewAccount{
			WorkspaceID: uuid.MustParse("018f0000-0000-7000-8000-000000000001"),
			Adapter:     account.SandboxAdapter,
			DisplayName: "More locks",
			Address:     "new",
			Config:      config,
		},
	)
	o.must(err)
	o.must(admin.Close(o.Context()))
}

// isDumped makes a dump as in the guide and restores it into a new database. A server with the key continues there with
// the same ids, PINs, pending deliveries, attempts, and jobs.
func (o *old) isDumped(hook *inbox) {
	o.Helper()
	file, restored := filepath.Join(o.TempDir(), "deviceaccess.dump"), storetest.New(o)
	o.tool("pg_dump", "--format=custom", "--file="+file, o.dsn)
	before := o.rows()
	if len(before["river_job"]) == 0 {
		o.Error("no job is in the dump, so the test proves nothing about jobs")
	}
	o.dsn = restored
	o.exec("drop schema public cascade; create schema public")
	o.tool("pg_restore", "--exit-on-error", "--single-transaction", "--no-owner", "--dbname="+restored, file)
	after := o.rows()
	for _, rows := range []map[string][]map[string]any{before, after} {
		for _, of := range rows {
			slices.SortFunc(of, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		o.Errorf("the restored data differs: %s", diff)
	}
	o.works(restored, hook)
	o.until("no job is left", func() bool {
		return !slices.ContainsFunc(o.rows()["river_job"], func(job map[string]any) bool {
			return job["finalized_at"] == nil && job["kind"] == before["river_job"][0]["kind"]
		})
	})
}
