package terraform

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

const (
	parallelism = 10
	version     = "0.0.1"
	// database connections: more are slower on two cores.
	connections = 8

	// The sides. The last two are names of providers.
	floor = "terraform_data"
	peer  = "peer"
	ours  = "deviceaccess"
)

// bed is the server with its database, and a directory to install the provider from.
type bed struct {
	dir       string
	terraform string
	cluster   *pglocal.Cluster
	app       *app.App
}

func newBed(ctx context.Context, terraform string) (_ *bed, err error) {
	b := &bed{terraform: terraform}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp(memory(), "deviceaccess-bench-"); err != nil {
		return nil, err
	}
	if err := os.Chmod(b.dir, 0o711); err != nil { //nolint:gosec // the database may run as another user
		return nil, err
	}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	if b.cluster, err = pglocal.Start(ctx, pglocal.Options{
		Dir:      filepath.Join(b.dir, "postgres"),
		Progress: os.Stderr,
	}); err != nil {
		return nil, err
	}
	b.app, err = app.Start(ctx, app.Config{
		Database: app.Database{
			DatabaseURL: b.cluster.DSN("postgres"),
			DataDir:     b.dir,
			MaxConns:    connections + app.ConnsOutsidePool,
		},
		Listen:  "127.0.0.1:0",
		Sandbox: true,
		// encodes log records as in production
		Sandboxing: app.Sandboxing{Profiles: []string{"august"}},
		Log:        slog.New(slog.NewJSONHandler(io.Discard, nil)),
	})
	return b, err
}

// memory returns a directory in memory, or "" for the default one.
func memory() string {
	const shared = "/dev/shm"
	if _, err := os.Stat(shared); err != nil {
		return ""
	}
	return shared
}

// build builds the providers as in releases, where terraform init finds them: each terraform command reads the program
// to check it.
func (b *bed) build(ctx context.Context) error {
	const module = "github.com/deviceaccess/terraform-provider-deviceaccess"
	for name, source := range map[string]string{ours: module, peer: module + "/bench/terraform/peer"} {
		target := filepath.Join(b.mirror(), "registry.terraform.io/deviceaccess", name, version, runtime.GOOS+"_"+
			runtime.GOARCH,
			"terraform-provider-"+name+"_v"+version)
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+
			version, "-o", target, source)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build the provider %s: %w", name, err)
		}
	}
	return nil
}

func (b *bed) mirror() string { return filepath.Join(b.dir, "mirror") }

func (b *bed) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if b.app != nil {
		if err := b.app.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "bench: stop the server:", err)
		}
	}
	if b.cluster != nil {
		if err := b.cluster.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "bench: stop the database:", err)
		}
	}
	os.RemoveAll(b.dir) //nolint:errcheck // a temporary directory
}
