package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/encryption"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/storetest"
)

// Errors of a configuration file name the line and what to do.
func TestParseConfig_Errors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"listen: a\n\nlistn: b":               `c.yaml:3: unknown setting "listn"; deviceaccess-server serve --help shows the names`,
		"config: b":                           `c.yaml:1: unknown setting "config"`,
		"check-config: true":                  `c.yaml:1: unknown setting "check-config"`,
		"listen: a\nlisten: b":                "c.yaml:2: listen is set twice: remove one of them",
		"listen: a\nsandbox-locks: many":      `c.yaml:2: sandbox-locks: "many" is not a whole number`,
		"sandbox: perhaps":                    "c.yaml:1: sandbox: must be true or false",
		"audit-retention: 2 years":            `c.yaml:1: audit-retention: "2 years" is not a duration such as 90m, 12h, or 30d`,
		"log-format: xml":                     `c.yaml:1: log-format: "xml" is not one of text, json`,
		"trust-proxy:\n- 10.0.0.0/8\n- proxy": `c.yaml:1: trust-proxy: "proxy" is not a network`,
		"allow-gateway-prefix: [home]":        `c.yaml:1: allow-gateway-prefix: "home" is not a network`,
		"listen: [a, b]":                      "c.yaml:1: listen takes one value, not a list",
		"listen:":                             "c.yaml:1: listen has no value",
		"listen: {host: a}":                   "c.yaml:1: listen has no value",
		"- listen":                            "c.yaml:1: the file must have lines such as",
		"listen: a\n  b: c":                   "c.yaml:2: mapping values are not allowed",
		"listen: a\nmaster-key: s3cret":       "c.yaml:2: master-key is a secret, which does not belong into this file",
		"database-url: postgres://me:s3cret@": "set database-url-file to its path",
	} {
		_, err := parseConfig("c.yaml", []byte(text), settingFlags())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v, want %s", text, err, want)
		} else if exitCode(err) != exitUsage {
			t.Errorf("%q: exit code %d", text, exitCode(err))
		}
	}
	for _, empty := range []string{"", "# none\n", "---\n"} {
		if got, err := parseConfig("c.yaml", []byte(empty), settingFlags()); len(got) > 0 || err != nil {
			t.Errorf("%q: %v %v", empty, got, err)
		}
	}
}

// A flag wins over its variable, and both win over the file, which also serves other commands than serve.
func TestConfig_Precedence(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	config := p.write("config.yaml", "database-url-file: "+p.write("url", storetest.New(t)+"\n")+"\n"+
		"data-dir: /nowhere\nlisten: 127.0.0.1:1\nallow-gateway-prefix: [10.0.0.0/8, 192.168.0.0/16]\n"+
		"connect-gateways: true\nsandbox-speed: 100\nlog-format: json\n")
	p.env = []string{"DEVICEACCESS_CONFIG=" + config} // DEVICEACCESS_DATA_DIR and --listen win
	r, cmd := p.serve()
	p.ok("workspaces", "create", "Home")
	if list := p.ok("keys", "list", "--output", "json"); !strings.Contains(list, r.Workspace) {
		t.Errorf("the commands use another database: %s", list)
	}
	p.stop(cmd)
	log, err := os.ReadFile(filepath.Join(p.dir, "server.log"))
	if err != nil || !strings.Contains(string(log), `"msg":"ready"`) ||
		!strings.Contains(string(log), "database-url-file in "+config+":1") {
		t.Errorf("the log is not in JSON, or does not name the source: %s %v", withoutKeys(log), err)
	}
	p.env = append(p.env, "DEVICEACCESS_LOG_FORMAT=text", "DEVICEACCESS_DATABASE_URL=postgres://127.0.0.1:1/none")
	if said := p.said(
		"migrate",
	); !strings.Contains(said, "DEVICEACCESS_DATABASE_URL") ||
		strings.Contains(said, `"msg"`) {
		t.Errorf("the variables do not win: %s", said)
	}
	for _, missing := range []string{"/nowhere/config.yaml", p.dir} {
		if said := p.said("keys", "list", "--config", missing); !strings.Contains(said, missing) {
			t.Errorf("%s: %s", missing, said)
		}
	}
}

// Secrets come from files and systemd credentials, and their content appears nowhere.
func TestSecrets_FromFiles(t *testing.T) {
	t.Parallel()
	p := newEmpty(t)
	key := base64.StdEncoding.EncodeToString(encryption.NewMaster())
	old := base64.StdEncoding.EncodeToString(encryption.NewMaster())
	url := p.write("url", storetest.New(t)+"\n")
	p.env = []string{"DEVICEACCESS_DATABASE_URL_FILE=" + url}
	p.ok("migrate", "--master-key-file", p.write("key", key+"\n"))
	if _, err := os.Stat(filepath.Join(p.dir, "data", "master.key")); !os.IsNotExist(err) {
		t.Errorf("the data directory has a key: %v", err)
	}
	p.ok("workspaces", "create", "Home", "--master-key-file", p.write("keys", key+"\n"+old+"\n"))
	credentials := filepath.Join(p.dir, "credentials")
	if err := os.Mkdir(credentials, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"key", "url"} {
		if err := os.Rename(filepath.Join(p.dir, name), filepath.Join(credentials, map[string]string{
			"key": "master-key", "url": "database-url",
		}[name])); err != nil {
			t.Fatal(err)
		}
	}
	p.env = []string{"CREDENTIALS_DIRECTORY=" + credentials}
	p.ok("keys", "create")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"missing":   {[]string{"--master-key-file", p.dir + "/none"}, "--master-key-file: " + p.dir + "/none does not exist"},
		"empty":     {[]string{"--master-key-file", p.write("empty", " \n")}, "is empty: write the secret into it"},
		"directory": {[]string{"--master-key-file", p.dir}, "is a directory"},
		"malformed": {[]string{"--master-key-file", p.write("short", "s3cret")}, "openssl rand -base64 32"},
		"both": {
			[]string{"--master-key-file", p.dir + "/none", "--master-key", key},
			"both --master-key and --master-key-file are set: remove one of them",
		},
		"no server": {
			[]string{"--database-url-file", p.write("wrong", "postgres://me:s3cret@127.0.0.1:1/x")},
			"port, user, password, and database in --database-url-file",
		},
	} {
		said := p.said(slices.Concat([]string{"keys", "list"}, c.args)...)
		if !strings.Contains(said, c.want) || strings.Contains(said, "s3cret") || strings.Contains(said, key) {
			t.Errorf("%s: %s", name, strings.ReplaceAll(said, key, "KEY"))
		}
	}
	public := p.write("public", key)
	if err := os.Chmod(public, 0o644); err != nil { //nolint:gosec // the mode is what is tested
		t.Fatal(err)
	}
	cmd := p.command("keys", "list", "--quiet", "--master-key-file", public)
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "every user of this machine can read the file of a secret") {
		t.Errorf("a public file: %v: %s", err, said)
	}
}

// write writes a file that only its owner can read, and returns its path.
func (p *program) write(name, text string) string {
	p.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	return path
}
