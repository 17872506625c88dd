package rest

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestReadWhole(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, initialBufferSize - 1, initialBufferSize, initialBufferSize + 1, 2 * initialBufferSize, 2*initialBufferSize + 1, blockSize, 2*blockSize - 1, 2 * blockSize, 1<<20 - 1, 1 << 20} {
		sent := make([]byte, size)
		for i := range sent {
			sent[i] = byte(i * 31 / 7)
		}
		for how, from := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "in halves": iotest.HalfReader, "with its end": iotest.DataErrReader} {
			for _, told := range []int64{-1, int64(size)} {
				if got, err := readWhole(from(bytes.NewReader(sent)), told); err != nil || !bytes.Equal(got, sent) {
					t.Errorf("%d bytes, %s, announced as %d: %d bytes come, %v", size, how, told, len(got), err)
				}
			}
		}
	}
}

func TestReadWhole_TruncatedBody(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	for _, size := range []int{0, 1, initialBufferSize, 3 * blockSize} {
		from := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(cut))
		if _, err := readWhole(from, 1<<20); !errors.Is(err, cut) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Neither an announced size nor the size received so far reserves much memory.
func TestReadWhole_BoundedMemory(t *testing.T) {
	t.Parallel()
	r := &roomy{left: 1 << 20}
	if _, err := readWhole(r, 1<<20); err != nil {
		t.Fatal(err)
	}
	if r.most > blockSize {
		t.Errorf("there is room for %d bytes more than have come", r.most)
	}
}

// roomy sends little at a time, and notes how much could be sent.
type roomy struct{ left, most int }

func (r *roomy) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.most = max(r.most, len(p))
	n := min(len(p), 1000, r.left)
	r.left -= n
	return n, nil
}
