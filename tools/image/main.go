// Command image assembles the container image of the server as an OCI archive, without a daemon, a registry, or a base
// image. The image contains the static program, the root certificates of this machine, and nothing else: no shell, and no
// PostgreSQL.
//
//	image -version 0.1.0 -commit 0123abc -out dist/image.tar amd64=dist/linux_amd64/deviceaccess-server arm64=...
//
// With -rootfs, the image contains the program and a file system of one architecture, which has the certificates, the
// user, and PostgreSQL. -variant then ends the tag of the image.
//
// The same inputs and SOURCE_DATE_EPOCH give the same archive.
package main

import (
	"archive/tar"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// uid is the user and the group of the server in the container. It is no user of common distributions.
const uid = 65532

const (
	dataDir = "/var/lib/deviceaccess"
	program = "/usr/bin/deviceaccess-server"
)

func main() {
	version := flag.String("version", "dev", "version of the server")
	commit := flag.String("commit", "", "commit of the source")
	certificates := flag.String("certificates", "/etc/ssl/certs/ca-certificates.crt", "root certificates as PEM")
	license := flag.String("license", "LICENSE", "license file")
	rootfs := flag.String("rootfs", "", "tar archive of the file system to put the program into")
	variant := flag.String("variant", "", "end of the tag of the image, such as standalone")
	out := flag.String("out", "image.tar", "OCI archive to write")
	flag.Parse()
	i := image{
		version:      *version,
		commit:       *commit,
		certificates: *certificates,
		license:      *license,
		rootfs:       *rootfs,
		tag:          *version,
		created:      created(),
	}
	if *variant != "" {
		i.tag += "-" + *variant
	}
	if err := i.write(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// created returns the time of SOURCE_DATE_EPOCH, or the start of 1970.
func created() time.Time {
	seconds, _ := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	return time.Unix(seconds, 0).UTC()
}

// image describes an image of several architectures.
type image struct {
	version, commit, certificates, license, rootfs, tag string

	created time.Time
}

// write writes an OCI archive with an image for each program, given as ARCHITECTURE=FILE.
func (i image) write(out string, programs []string) (err error) {
	if len(programs) == 0 {
		return errors.New("name the programs, such as amd64=dist/linux_amd64/deviceaccess-server")
	}
	if i.rootfs != "" && len(programs) > 1 {
		return errors.New("-rootfs is of one architecture: name one program")
	}
	dir, err := os.MkdirTemp(filepath.Dir(out), ".image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		arch, file, ok := strings.Cut(p, "=")
		if !ok {
			return fmt.Errorf("%q is not ARCHITECTURE=FILE", p)
		}
		img, err := i.of(arch, file, dir)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	archived := filepath.Join(dir, "layout")
	path, err := layout.Write(archived, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	const name = "deviceaccess-server"
	named := layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": name + ":" + i.tag,                        // for podman
		"io.containerd.image.name":          "docker.io/library/" + name + ":" + i.tag, // for docker
	})
	if err := path.AppendIndex(index, named); err != nil {
		return err
	}
	return i.archive(out, archived)
}

// of returns the image of one architecture. Its layer is in a file of dir.
func (i image) of(arch, file, dir string) (v1.Image, error) {
	layer, err := i.layer(file, filepath.Join(dir, arch+".tar"))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.Append(img, mutate.Addendum{
		Layer: layer,
		History: v1.History{
			Created:   v1.Time{Time: i.created},
			CreatedBy: "tools/image",
		},
	}); err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: i.created}
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", uid, uid),
		Entrypoint:   []string{program},
		Cmd:          []string{"serve"},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"8500/tcp": {}},
		Volumes:      map[string]struct{}{dataDir: {}},
		Env: []string{
			"PATH=/usr/bin:/bin",
			"DEVICEACCESS_LISTEN=0.0.0.0:8500",
			"DEVICEACCESS_DATA_DIR=" + dataDir,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "deviceaccess-server",
			"org.opencontainers.image.version":  i.version,
			"org.opencontainers.image.revision": i.commit,
			"org.opencontainers.image.licenses": "MPL-2.0",
			"org.opencontainers.image.source":   "https://github.com/deviceaccess/terraform-provider-deviceaccess",
		},
	}
	return mutate.ConfigFile(img, config)
}

// layer returns the file system of the image, which it writes to the file out.
func (i image) layer(file, out string) (v1.Layer, error) {
	f, err := os.Create(out)
	if err != nil {
		return nil, err
	}
	t := &tarWriter{Writer: tar.NewWriter(f), at: i.created}
	if i.rootfs == "" {
		i.base(t)
	} else {
		t.err = i.copyRootfs(t)
	}
	t.dir("etc/deviceaccess", 0, 0o755)
	t.dir("usr/share/doc/deviceaccess-server", 0, 0o755)
	t.dir(dataDir[1:], uid, 0o700)
	t.copy("usr/share/doc/deviceaccess-server/copyright", 0o644, i.license)
	t.copy(program[1:], 0o755, file)
	if err := errors.Join(t.err, t.Close(), f.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(out, tarball.WithMediaType(types.OCILayer))
}

// base writes what the program needs.
func (i image) base(t *tarWriter) {
	for _, dir := range []string{
		"etc", "etc/ssl", "etc/ssl/certs", "usr", "usr/bin", "usr/share", "usr/share/doc", "var", "var/lib",
	} {
		t.dir(dir, 0, 0o755)
	}
	t.dir("tmp", 0, 0o1777)
	t.file("etc/passwd", 0o644, strings.NewReader(fmt.Sprintf(
		"root:x:0:0:root:/:/usr/sbin/nologin\ndeviceaccess:x:%d:%d::%s:/usr/sbin/nologin\n", uid, uid, dataDir)))
	t.file("etc/group", 0o644, strings.NewReader(fmt.Sprintf("root:x:0:\ndeviceaccess:x:%d:\n", uid)))
	t.copy("etc/ssl/certs/ca-certificates.crt", 0o644, i.certificates)
}

// copyRootfs writes the file system of -rootfs, without devices, which only root can create.
func (i image) copyRootfs(t *tarWriter) error {
	f, err := os.Open(i.rootfs)
	if err != nil {
		return err
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read %s: %w", i.rootfs, err)
		case h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock || strings.HasPrefix(h.Name, "./dev/"):
			continue
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(t, r); err != nil {
			return err
		}
	}
}

// archive writes a directory as a tar archive.
func (i image) archive(out, dir string) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	t := &tarWriter{Writer: tar.NewWriter(f), at: i.created}
	walk := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == ".":
		case d.IsDir():
			t.dir(path, 0, 0o755)
		default:
			t.copy(path, 0o644, filepath.Join(dir, path))
		}
		return err
	})
	return errors.Join(walk, t.err, t.Close(), f.Close())
}

// tarWriter writes files with one time. It keeps its first error.
type tarWriter struct {
	*tar.Writer
	at  time.Time
	err error
}

func (t *tarWriter) dir(path string, owner int, mode int64) {
	t.header(tar.Header{Typeflag: tar.TypeDir, Name: path + "/", Mode: mode, Uid: owner, Gid: owner})
}

func (t *tarWriter) file(path string, mode int64, content *strings.Reader) {
	t.header(tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: mode, Size: content.Size()})
	t.content(content)
}

func (t *tarWriter) copy(path string, mode int64, from string) {
	f, err := os.Open(from)
	if err != nil {
		t.err = errors.Join(t.err, err)
		return
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.err = errors.Join(t.err, err)
		return
	}
	t.header(tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: mode, Size: st.Size()})
	t.content(f)
}

func (t *tarWriter) header(h tar.Header) {
	h.ModTime = t.at
	if t.err == nil {
		t.err = t.WriteHeader(&h)
	}
}

func (t *tarWriter) content(from io.Reader) {
	if t.err == nil {
		_, t.err = io.Copy(t.Writer, from)
	}
}
