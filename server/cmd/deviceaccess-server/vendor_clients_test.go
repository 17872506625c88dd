package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// Registrations at vendors are read from flags, and their secrets from files.
func TestVendorClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret, empty := file("secret", "hidden=value\n"), file("empty", "\n")
	for name, c := range map[string]struct {
		args []string
		want map[string]adapter.Client
		err  string
	}{
		"none":   {args: nil, want: map[string]adapter.Client{}},
		"public": {args: []string{"--vendor-client", "seam=our=id"}, want: map[string]adapter.Client{"seam": {ID: "our=id"}}},
		"two": {
			args: []string{
				"--vendor-client", "seam=a", "--vendor-client", "devicecloud=b",
				"--vendor-client-secret-file", "seam=" + secret,
			},
			want: map[string]adapter.Client{"seam": {ID: "a", Secret: "hidden=value"}, "devicecloud": {ID: "b"}},
		},
		"no id":          {args: []string{"--vendor-client", "seam="}, err: "ADAPTER=ID"},
		"no form":        {args: []string{"--vendor-client", "seam"}, err: "ADAPTER=ID"},
		"unknown vendor": {args: []string{"--vendor-client", "acme=a"}, err: `no adapter "acme"; the adapters are zwavejs`},
		"secret without client": {
			args: []string{"--vendor-client", "seam=a", "--vendor-client-secret-file", "zwavejs=" + secret},
			err:  "an adapter of --vendor-client",
		},
		"missing file": {
			args: []string{"--vendor-client", "seam=a", "--vendor-client-secret-file", "seam=" + secret + "x"},
			err:  "no such file",
		},
		"empty file": {
			args: []string{"--vendor-client", "seam=a", "--vendor-client-secret-file", "seam=" + empty},
			err:  "is empty",
		},
	} {
		var got map[string]adapter.Client
		command := &cli.Command{
			Flags: vendorClientFlags(),
			Action: func(_ context.Context, c *cli.Command) (err error) {
				got, err = vendorClients(c)
				return err
			},
		}
		err := command.Run(t.Context(), append([]string{"test"}, c.args...))
		switch {
		case c.err == "" && (err != nil || !maps.Equal(got, c.want)):
			t.Errorf("%s: %d registrations, %v", name, len(got), err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v; expected a word on %q", name, err, c.err)
		}
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: the error shows the secret", name)
		}
	}
}

// The server reads registrations from variables as well, and refuses to start with a wrong one.
func TestVendorClients_Variables(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	secret := p.file("secret", "hidden")
	p.env = []string{
		"DEVICEACCESS_VENDOR_CLIENT=seam=a,devicecloud=b",
		"DEVICEACCESS_VENDOR_CLIENT_SECRET_FILE=devicecloud=" + secret,
	}
	_, cmd := p.serve()
	p.stop(cmd)
	p.env[0] = "DEVICEACCESS_VENDOR_CLIENT=seam=a,acme=b"
	if _, err := p.run(
		"serve",
		"--listen",
		"127.0.0.1:0",
	); err == nil ||
		!strings.Contains(err.Error(), `no adapter "acme"`) {
		t.Errorf("an unknown vendor: %v", err)
	}
}
