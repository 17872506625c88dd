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

// Reader reads a backup. Nothing of it may be relied on before Next has come to the end.
type Reader struct {
	Manifest Manifest
	zip      *gzip.Reader
	archive  *tar.Reader
	sums     bytes.Buffer
	name     string    // of the file that is being read
	sum      hash.Hash // nil for a directory
}

// NewReader reads the manifest. It fails with ErrDamaged for what is no backup.
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
		return nil, damaged(errors.New("it has no manifest"))
	}
	b, err := io.ReadAll(io.LimitReader(content, 1<<20))
	if err != nil {
		return nil, damaged(err)
	}
	if err := json.Unmarshal(b, &r.Manifest); err != nil {
		return nil, damaged(err)
	}
	if r.Manifest.Format < 1 {
		return nil, damaged(errors.New("its manifest names no format"))
	}
	if r.Manifest.Format > Format {
		return nil, fmt.Errorf("the backup has format %d, and this version of the program reads %d: use the version that made it, %q", r.Manifest.Format, Format, r.Manifest.Program)
	}
	return r, nil
}

// Next is the next file or directory. At the end it is io.EOF, and then all that came was as it was written;
// ErrDamaged says that it was not, or that there is no end.
func (r *Reader) Next() (*tar.Header, io.Reader, error) {
	if err := r.finish(); err != nil {
		return nil, nil, err
	}
	h, err := r.archive.Next()
	if err != nil {
		return nil, nil, damaged(err) // the checksums are the end
	}
	if h.Name == sumsName {
		return nil, nil, r.end()
	}
	if r.name = h.Name; h.Typeflag == tar.TypeReg {
		r.sum = sha256.New()
	}
	return h, content{r}, nil
}

// finish reads what is left of the last file.
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
		return damaged(errors.New("its checksums are others"))
	}
	if _, err := r.archive.Next(); !errors.Is(err, io.EOF) {
		return damaged(errors.Join(errors.New("there is more than it should hold"), err))
	}
	if n, err := io.Copy(io.Discard, r.zip); err != nil || n > 0 { // its own checksum is at the end
		return damaged(errors.Join(errors.New("it does not end where it should"), err))
	}
	return io.EOF
}

// content is the file that is being read, which adds to its sum.
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
