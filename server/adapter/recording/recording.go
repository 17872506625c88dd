// Package recording records the shapes of a vendor's answers, and replays them in tests. A recording is a directory with
// one JSON file for each request. It contains no name, address, PIN, token, or identifier:
//
//   - Identifiers become placeholders that are the same in all files of the recording, so that it can be replayed.
//   - Other strings keep their length: letters become a or A, digits become 0. Words of package-internal lists stay, such
//     as "locked", unless the key says that the value is a name or a secret.
//   - Outcomes of calls stay if they are one word or an integer, such as "error_code": "invalid_grant".
//   - Integers below 100 stay, since they are counts and kinds. Other numbers keep their magnitude: 4821 becomes 1000.
//   - Times are moved by a random duration, the same for the whole recording.
//   - Keys, types, booleans, and null stay. Keys that do not look like names of fields are redacted too.
//   - Headers are recorded by name. Only the content type and the retry time have values.
package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// maxBody is the largest body in bytes that is recorded.
const maxBody = 8 << 20

// maxExchanges is the largest number of files in a recording.
const maxExchanges = 9999

// Exchange is the content of one file: a request and its response.
type Exchange struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	// Query holds the parameters of the URL.
	Query url.Values `json:"query,omitempty"`
	// RequestHeaders are the names of the request's headers.
	RequestHeaders []string `json:"request_headers"`
	// Form is a form-encoded body, and Request a JSON body.
	Form    url.Values      `json:"form,omitempty"`
	Request json.RawMessage `json:"request,omitempty"`
	// Status is 0 if there was no response.
	Status int `json:"status"`
	// Headers are the headers of the response, most without their value.
	Headers map[string]string `json:"headers,omitempty"`
	// Response is a JSON body, and Text any other.
	Response json.RawMessage `json:"response,omitempty"`
	Text     string          `json:"response_text,omitempty"`
}

// Recorder records what passes through its transports. It is safe for concurrent use.
type Recorder struct {
	dir string

	mu       sync.Mutex
	redactor *redactor
	files    int
	err      error
}

// New returns a recorder that writes to a directory. It creates the directory. It fails if the directory has content,
// because a recording replaces nothing.
func New(dir string) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the recording: %w", err)
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the directory of the recording: %w", err)
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("the directory %s is not empty: name another one", dir)
	}
	return &Recorder{dir: dir, redactor: newRedactor()}, nil
}

// Finish returns the number of files, and the first error that prevented a recording.
func (r *Recorder) Finish() (files int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files, r.err
}

// Wrap returns a transport that records, and that sends requests with next. It is an adapter.WrapTransport.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper { return &transport{r, next} }

type transport struct {
	recorder *Recorder
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	sent, req, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	res, err := t.next.RoundTrip(req)
	if err != nil {
		t.recorder.record(req, sent, nil, nil)
		return nil, err
	}
	received, reading := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	res.Body = &readAgain{io.MultiReader(bytes.NewReader(received), failing{reading}, res.Body), res.Body}
	t.recorder.record(req, sent, res, received)
	return res, nil
}

// readAgain reads a body from its start.
type readAgain struct {
	io.Reader
	io.Closer
}

// failing returns an error, if it has one, and else the end.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// bodyOf returns the body of a request, and the request to send.
func bodyOf(req *http.Request) ([]byte, *http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, req, nil
	}
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("read the request to record: %w", err)
	}
	if err := req.Body.Close(); err != nil {
		return nil, nil, fmt.Errorf("read the request to record: %w", err)
	}
	// A transport must not change its request.
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(data))
	return data, req, nil
}

// record writes one file. res is nil if there was no response.
func (r *Recorder) record(req *http.Request, sent []byte, res *http.Response, received []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.files >= maxExchanges {
		return
	}
	e := r.redactor.request(req, sent)
	if res != nil {
		e.Status = res.StatusCode
		e.Headers = r.redactor.headers(res.Header)
		e.Response, e.Text = r.redactor.body(received)
	}
	r.files++
	r.err = write(filepath.Join(r.dir, fmt.Sprintf("%04d.json", r.files)), e)
}

func write(file string, e Exchange) error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the recording: %w", err)
	}
	const mode = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(file, mode, 0o600) //nolint:gosec // the operator names the directory
	if err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	if _, err := f.Write(append(data, '\n')); err != nil {
		return errors.Join(fmt.Errorf("write the recording: %w", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}

// request redacts a request.
func (r *redactor) request(req *http.Request, sent []byte) Exchange {
	e := Exchange{
		Method: req.Method,
		Path:   r.path(req.URL.EscapedPath()),
		Query:  r.values(req.URL.Query()),
	}
	for name := range req.Header {
		e.RequestHeaders = append(e.RequestHeaders, name)
	}
	slices.Sort(e.RequestHeaders)
	kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if kind == "application/x-www-form-urlencoded" {
		form, _ := url.ParseQuery(string(sent)) // what is malformed is not recorded
		e.Form = r.values(form)
		return e
	}
	body, text := r.body(sent)
	if text != "" {
		body, _ = json.Marshal(text) // a string is always JSON
	}
	e.Request = body
	return e
}

// headers redacts the headers of a response.
func (r *redactor) headers(all http.Header) map[string]string {
	out := map[string]string{}
	for name := range all {
		out[name] = ""
	}
	if kind, _, err := mime.ParseMediaType(all.Get("Content-Type")); err == nil {
		out["Content-Type"] = kind
	}
	if after := all.Get("Retry-After"); after != "" {
		out["Retry-After"] = pattern(after)
		if strings.Trim(after, "0123456789") == "" {
			out["Retry-After"] = magnitude(after)
		}
	}
	return out
}

// body redacts a body. It returns it as JSON, or as text if it is not JSON.
func (r *redactor) body(data []byte) (json.RawMessage, string) {
	switch {
	case len(data) == 0:
		return nil, ""
	case len(data) > maxBody:
		return nil, "(too large to record)"
	}
	value, err := decode(data)
	if err != nil {
		return nil, pattern(string(data[:min(len(data), 1000)]))
	}
	out, err := json.Marshal(r.value("", value))
	if err != nil {
		return nil, "(cannot be recorded)"
	}
	return out, ""
}

// decode decodes one JSON value, with numbers as they are written.
func decode(data []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one value")
	}
	return value, nil
}
