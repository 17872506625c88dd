package main

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// serve --check-config prints one line per part, and changes nothing.
func TestCheckConfig(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	empty := p.emptySchema()
	check := func(code int, wants []string, args ...string) {
		t.Helper()
		out, err := p.command(slices.Concat([]string{"serve", "--check-config"}, args)...).Output()
		got := 0
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			got = e.ExitCode()
		}
		if got != code {
			t.Errorf("%v: exit code %d, want %d: %v", args, got, code, err)
		}
		for _, want := range wants {
			if !regexp.MustCompile(`(?m)^` + want).Match(out) {
				t.Errorf("%v: no line %q in %s", args, want, out)
			}
		}
	}
	check(0, []string{
		`ok +settings +flags, variables, and /dev/null`, `ok +listen +127.0.0.1:8500`, `ok +tls +off`,
		`ok +public url +not set`, `ok +data directory .*the first start creates it`,
		`ok +database .*empty: the first start creates schema`, `ok +master key +the first start creates it`,
	}, "--database-url", empty)
	if _, err := store.SchemaVersion(t.Context(), empty); !errors.Is(err, store.ErrNoSchema) {
		t.Errorf("the database was changed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "data")); !os.IsNotExist(err) {
		t.Errorf("the data directory was created: %v", err)
	}
	p.ok("migrate")
	check(0, []string{`ok +database .*, schema \d+$`, `ok +master key +opens the database`},
		"--public-url", "https://locks.example.com")
	other := base64.StdEncoding.EncodeToString(encryption.NewMaster())
	check(1, []string{
		`FAILED +listen .*--listen`, `FAILED +metrics .*--metrics-listen`, `FAILED +tls .*--tls-cert`,
		`FAILED +data directory .*is not a directory`, `FAILED +master key `, `ok +database`,
	}, "--listen", "nonsense", "--metrics-listen", "127.0.0.1:http-none", "--tls-cert", "/none", "--tls-key", "/none",
		"--data-dir", "/dev/null", "--master-key-file", p.write("key", other))
	check(1, []string{`FAILED +database .*check host, port`}, "--database-url", "postgres://127.0.0.1:1/none")
	check(exitUsage, nil, "--tls-cert", "/none")
}

// emptySchema returns a URL of the database with an empty schema.
func (p *program) emptySchema() string {
	p.Helper()
	conn, err := pgx.Connect(p.Context(), p.database)
	if err != nil {
		p.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(p.Context()))
	if _, err := conn.Exec(p.Context(), "create schema empty"); err != nil {
		p.Fatal(err)
	}
	if u, err := url.Parse(p.database); err == nil && u.Scheme != "" {
		query := u.Query()
		query.Set("search_path", "empty")
		u.RawQuery = query.Encode()
		return u.String()
	}
	return p.database + " search_path=empty"
}
