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

// Root can read all files, so serve --check-config and doctor try them as the owner of the data directory.
func TestCheckConfig_AsRoot(t *testing.T) {
	t.Parallel()
	owner := unprivileged(t)
	p := newProgram(t)
	p.env = []string{"INVOCATION_ID="}
	data, inHome := filepath.Join(p.dir, "data"), filepath.Join(p.dir, "home", "tls.key")
	if err := errors.Join(
		os.Mkdir(data, 0o700), os.Chown(data, int(owner.Uid), int(owner.Gid)), os.Mkdir(filepath.Dir(inHome), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	cert, key := clientCertificate(t)
	write := func(path, text string, mode os.FileMode) string {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	at := func(name string) string { return filepath.Join(p.dir, name) }
	certFile, good := write(at("tls.crt"), cert, 0o644), write(at("good.key"), key, 0o644)
	closed, secret := write(at("closed.key"), key, 0o600), write(at("secret"), "hidden", 0o600)
	grouped := write(at("grouped.key"), key, 0o640)
	config := write(at("config.yaml"), "offline-debounce: 10m\n", 0o600)
	write(inHome, key, 0o644)
	if err := os.Chown(grouped, 0, int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
	tls := func(key string) []string { return []string{"--tls-cert", certFile, "--tls-key", key} }
	refused := func(part, file string) string {
		return part + " +user " + otherUser + ", the owner of the data directory, cannot read " + file + ".*chgrp.*LoadCredential"
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"all may read":      {tls(good), `ok +tls +` + certFile},
		"the group may":     {tls(grouped), `ok +tls +` + certFile},
		"key of root":       {tls(closed), "FAILED +" + refused("tls", closed)},
		"directory of root": {tls(inHome), "FAILED +" + refused("tls", inHome)},
		"vendor secret": {
			[]string{"--vendor-client", "seam=a", "--vendor-client-secret-file", "seam=" + secret},
			"FAILED +" + refused("vendor client secrets", secret),
		},
		"configuration": {[]string{"--config", config}, "FAILED +" + refused("settings", config)},
		"passed by systemd": {
			[]string{"--master-key-file", write(at("key"), base64.StdEncoding.EncodeToString(encryption.NewMaster()), 0o600)},
			`ok +master key`,
		},
	} {
		for _, command := range [][]string{{"serve", "--check-config"}, {"doctor", "--listen", "127.0.0.1:0"}} {
			_, out := p.exits(slices.Concat(command, c.args)...)
			if !regexp.MustCompile(`(?m)^` + c.want).MatchString(out) {
				t.Errorf("%s: %v: no line %q in %s", name, command, c.want, out)
			}
		}
	}
	out, err := p.as(owner, p.command(append([]string{"serve", "--check-config"}, tls(closed)...)...)).CombinedOutput()
	if err == nil || !regexp.MustCompile("FAILED +tls .*user "+otherUser+" cannot read the file; .*chgrp").Match(out) {
		t.Errorf("the owner: %v: %s", err, out)
	}
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
