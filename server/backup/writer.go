package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Writer writes a backup. Without Close, the backup is incomplete and readers reject it.
type Writer struct {
	archive *tar.Writer
	zip     *gzip.Writer
	sums    bytes.Buffer
	now     time.Time
}

// NewWriter writes the manifest and returns a Writer.
func NewWriter(to io.Writer, m Manifest) (*Writer, error) {
	zip, err := gzip.NewWriterLevel(to, gzip.BestSpeed) // an idle database is mostly zeros
	if err != nil {
		return nil, err
	}
	w := &Writer{archive: tar.NewWriter(zip), zip: zip, now: m.CreatedAt}
	m.Format = Format
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	return w, w.PutBytes(manifestName, append(b, '\n'))
}

// PutBytes adds a regular file.
func (w *Writer) PutBytes(name string, content []byte) error {
	return w.Put(&tar.Header{
		Typeflag: tar.TypeReg,
		Name:     name,
		Mode:     0o600,
		Size:     int64(len(content)),
		ModTime:  w.now,
	}, bytes.NewReader(content))
}

// Put adds a file or a directory. It returns io.ErrUnexpectedEOF if content is shorter than the header says.
func (w *Writer) Put(h *tar.Header, content io.Reader) error {
	if err := w.archive.WriteHeader(h); err != nil {
		return fmt.Errorf("write %s to the backup: %w", h.Name, err)
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.archive, sum), content)
	if err == nil && n != h.Size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("write %s to the backup: %w", h.Name, err)
	}
	fmt.Fprintf(&w.sums, "%x  %s\n", sum.Sum(nil), h.Name)
	return nil
}

// Close writes the checksums and ends the archive. It does not close the underlying writer.
func (w *Writer) Close() error {
	err := w.PutBytes(sumsName, bytes.Clone(w.sums.Bytes()))
	if err = errors.Join(err, w.archive.Close(), w.zip.Close()); err != nil {
		return fmt.Errorf("end the backup: %w", err)
	}
	return nil
}
