// Package leaks learns what is secret from the requests and answers of a run, and looks for it in what the run leaves
// behind: logs, traces, metrics, a dump of the database, the output of Terraform, refusals.
package secretscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// isSecret says whether what stands under a name, of JSON, of a form, of a query or of a header, is secret.
func isSecret(name string) bool { return members.MatchString(name) }

var members = regexp.MustCompile(`(?i)^(code|pin|([a-z]+[_-])*(secret|token|api[_-]key|password|passphrase|private[_-]key))$`)

// known are words that stand in those members and that everybody may know: the passwords of simulated vendors are shown on
// their pages.
var known = map[string]bool{"1234": true}

// shortest is the length of a secret that is looked for. Shorter ones are found by chance wherever there are numbers.
const shortest = 4

// Ledger has the secrets of a run, and the refusals that it has seen. Its zero value has none.
type Ledger struct {
	// Random says that the PINs are many, and that nobody has chosen them. Some such digits are a duration or a number of rows
	// by chance, so they are looked for as values of their own only, unless they begin with a 0, as numbers do not.
	Random bool

	mu       sync.Mutex
	secrets  map[string]string // and what each is
	refusals bytes.Buffer
}

// Learn adds a secret. It returns false for what is too short, or no secret at all.
func (l *Ledger) Learn(what, secret string) bool {
	if len(secret) < shortest || known[secret] {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.secrets == nil {
		l.secrets = map[string]string{}
	}
	if _, there := l.secrets[secret]; !there {
		l.secrets[secret] = what
	}
	return true
}

// Count is how many secrets of this kind were learned: the name of a member, or "credential".
func (l *Ledger) Count(what string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, kind := range l.secrets {
		if kind == what {
			n++
		}
	}
	return n
}

// Refusals are the bodies of all answers with a status of 400 and above.
func (l *Ledger) Refusals() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.refusals.Bytes())
}

// Watch learns from all requests to a handler, whatever it answers, and from what it grants.
func (l *Ledger) Watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		l.asked(r, body)
		answer := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		if answer.status < 400 {
			l.read(answer.body.Bytes())
			return
		}
		refusal := fmt.Sprintf("%s %d %s\n", r.URL.Path, answer.status, answer.body.Bytes())
		if m := connectPage.FindStringSubmatch(r.URL.Path); m != nil { // which names itself to whoever has it already
			refusal = strings.ReplaceAll(refusal, m[1], "…")
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refusals.WriteString(refusal)
	})
}

// publishable keys are known to everybody.
const publishable = "seam_pk"

// asked learns from a request before it is known what becomes of it: what is refused is as secret as what is granted. A
// PIN that is taken on one lock opens another, and a password with a typing error tells most of the right one.
func (l *Ledger) asked(r *http.Request, body []byte) {
	l.address(r.URL.Path)
	l.form(r.URL.RawQuery)
	for name, values := range r.Header {
		for _, v := range values {
			l.walk(name, v)
		}
	}
	if _, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && !strings.HasPrefix(token, publishable) {
		l.Learn("credential", token)
		if _, password, ok := r.BasicAuth(); ok {
			l.Learn("password", password)
		}
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		l.form(string(body))
		return
	}
	l.read(body)
}

// read learns from a JSON document, or from what was meant to be one.
func (l *Ledger) read(document []byte) {
	var value any
	numbers := json.NewDecoder(bytes.NewReader(document))
	numbers.UseNumber()
	if numbers.Decode(&value) == nil {
		l.walk("", value)
		return
	}
	for _, m := range pairs.FindAllSubmatch(document, -1) {
		l.walk(string(m[1]), string(m[2]))
	}
}

// pairs are the members of JSON that is cut off, or malformed otherwise.
var pairs = regexp.MustCompile(`"([\w-]+)"\s*:\s*"?([^"\s,}]+)`)

func (l *Ledger) walk(name string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for member, of := range v {
			l.walk(member, of)
		}
	case []any:
		for _, of := range v {
			l.walk(name, of)
		}
	case json.Number: // a PIN that is no string is refused
		l.walk(name, v.String())
	case string:
		if isSecret(name) && !strings.HasPrefix(v, publishable) {
			l.Learn(name, v)
		}
		l.address(v)
	}
}

// address learns from an URL, or its path, that lets in whoever knows it: that of a connect page, and that which a vendor sends to.
func (l *Ledger) address(url string) {
	if m := connectPage.FindStringSubmatch(url); m != nil {
		l.Learn("connect page", m[1])
	}
	if m := vendorsAddress.FindStringSubmatch(url); m != nil {
		l.Learn("address for a vendor", m[1])
	}
}

var (
	connectPage    = regexp.MustCompile(`^(?:https?://[^/]+)?/connect/([\w-]{16,})(?:[/?]|$)`)
	vendorsAddress = regexp.MustCompile(`^(?:https?://[^/]+)?/vendors/[\w-]+/([\w-]{16,})$`)
)

func (l *Ledger) form(encoded string) {
	values, err := url.ParseQuery(encoded)
	if err != nil {
		return
	}
	for name, of := range values {
		for _, v := range of {
			l.walk(name, v)
		}
	}
}

type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(data []byte) (int, error) {
	r.body.Write(data)
	return r.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
