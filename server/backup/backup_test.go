package backup_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
)

var manifest = backup.Manifest{
	Format:    backup.Format,
	CreatedAt: time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC),
	Program:   "v1",
	Schema:    21,
}

func write(t *testing.T, whole bool) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, manifest)
	must(t, err)
	must(t, w.PutBytes("key", []byte("secret")))
	must(t, w.Put(&tar.Header{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o700}, nil))
	must(t, w.PutBytes("data/file", []byte(strings.Repeat("row ", 200))))
	must(t, w.PutBytes("data/empty", nil))
	if whole {
		must(t, w.Close())
	}
	return out.Bytes()
}

// read returns the content by name, once the reader has reached the end.
func read(b []byte) (map[string]string, error) {
	r, err := backup.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	got := map[string]string{}
	for {
		h, content, err := r.Next()
		if errors.Is(err, io.EOF) {
			got["manifest"] = r.Manifest.CreatedAt.String()
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(content)
		if err != nil {
			return nil, err
		}
		got[h.Name] = string(text)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	got, err := read(write(t, true))
	want := map[string]string{
		"manifest":   manifest.CreatedAt.String(),
		"key":        "secret",
		"data/":      "",
		"data/file":  strings.Repeat("row ", 200),
		"data/empty": "",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestUnreadFilesAreVerified(t *testing.T) {
	t.Parallel()
	r, err := backup.NewReader(bytes.NewReader(write(t, true)))
	must(t, err)
	for {
		_, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
	}
}

// A backup that is truncated anywhere, or has any byte changed, is rejected, unless the byte has no effect on the
// content.
func TestDamageIsDetected(t *testing.T) {
	t.Parallel()
	whole := write(t, true)
	want, err := read(whole)
	must(t, err)
	for n := range whole {
		if _, err := read(whole[:n]); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("truncated after %d of %d bytes: %v", n, len(whole), err)
		}
		changed := bytes.Clone(whole)
		changed[n] ^= 0x10
		if got, err := read(changed); err == nil && !cmp.Equal(got, want) {
			t.Errorf("a change of byte %d was not detected", n)
		}
	}
	for name, b := range map[string][]byte{
		"not closed":         write(t, false),
		"with data appended": append(bytes.Clone(whole), "more"...),
		"twice":              append(bytes.Clone(whole), whole...),
		"text":               []byte("no backup"),
	} {
		if _, err := read(b); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPut_ShortContent(t *testing.T) {
	t.Parallel()
	w, err := backup.NewWriter(io.Discard, manifest)
	must(t, err)
	err = w.Put(&tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: 10}, strings.NewReader("short"))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}
