package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Reader reads a backup. Its content is verified only once Next has returned io.EOF.
type Reader struct {
	// Manifest is set by NewReader.
	Manifest Manifest
	zip      *gzip.Reader
	archive  *tar.Reader
	sums     bytes.Buffer
	name     string    // of the current file
	sum      hash.Hash // nil for a directory
}

// NewReader returns a Reader after it has read the manifest. It returns ErrDamaged if the file is not a backup, and
// another error for a newer format.
func NewReader(from io.Reader) (*Reader, error) {
	zip, err := gzip.NewReader(from)
	if err != nil {
		return nil, damaged(err)
	}
	r := &Reader{zip: zip, archive: tar.NewReader(zip)}
	h, content, err := r.Next()
	if err != nil {
		return nil, damaged(err)
	}
	if h.Name != manifestName {
		return nil, damaged(errors.New("no manifest"))
	}
	b, err := io.ReadAll(io.LimitReader(content, 1<<20))
	if err != nil {
		return nil, damaged(err)
	}
	if err := json.Unmarshal(b, &r.Manifest); err != nil {
		return nil, damaged(err)
	}
	if r.Manifest.Format < 1 {
		return nil, damaged(errors.New("the manifest has no format"))
	}
	if r.Manifest.Format > Format {
		return nil, fmt.Errorf(
			"the backup has format %d, and this version of the program reads %d: use the version that created it, %q",
			r.Manifest.Format,
			Format,
			r.Manifest.Program,
		)
	}
	return r, nil
}

// Next returns the next file or directory. It returns io.EOF at the end, after it has verified everything, and
// ErrDamaged if the backup was changed or is incomplete.
func (r *Reader) Next() (*tar.Header, io.Reader, error) {
	if err := r.finish(); err != nil {
		return nil, nil, err
	}
	h, err := r.archive.Next()
	if err != nil {
		return nil, nil, damaged(err) // a complete backup ends with the checksums
	}
	if h.Name == sumsName {
		return nil, nil, r.end()
	}
	if r.name = h.Name; h.Typeflag == tar.TypeReg {
		r.sum = sha256.New()
	}
	return h, content{r}, nil
}

// finish reads the rest of the current file.
func (r *Reader) finish() error {
	if r.sum == nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, content{r}); err != nil {
		return err
	}
	fmt.Fprintf(&r.sums, "%x  %s\n", r.sum.Sum(nil), r.name)
	r.sum = nil
	return nil
}

func (r *Reader) end() error {
	said, err := io.ReadAll(r.archive)
	if err != nil {
		return damaged(err)
	}
	if !bytes.Equal(said, r.sums.Bytes()) {
		return damaged(errors.New("wrong checksums"))
	}
	if _, err := r.archive.Next(); !errors.Is(err, io.EOF) {
		return damaged(errors.Join(errors.New("data after the checksums"), err))
	}
	// gzip verifies its own checksum at the end
	if n, err := io.Copy(io.Discard, r.zip); err != nil || n > 0 {
		return damaged(errors.Join(errors.New("data after the archive"), err))
	}
	return io.EOF
}

// content reads the current file and updates its checksum.
type content struct{ *Reader }

func (c content) Read(p []byte) (int, error) {
	if c.sum == nil {
		return 0, io.EOF
	}
	n, err := c.archive.Read(p)
	c.sum.Write(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		err = damaged(err)
	}
	return n, err //nolint:wrapcheck // io.EOF is the end
}

func damaged(err error) error {
	if errors.Is(err, ErrDamaged) {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w (%w)", ErrDamaged, err)
}
