// Package secretscan learns secrets from the requests and responses of a run, and searches for them in what the run
// leaves behind: logs, traces, metrics, a database dump, Terraform's output, and error responses.
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

// isSecret reports whether the value of a member of JSON, a form field, a query parameter, or a header is secret.
func isSecret(name string) bool { return members.MatchString(name) }

var members = regexp.MustCompile(
	`(?i)^(code|pin|([a-z]+[_-])*(secret|token|api[_-]key|password|passphrase|private[_-]key))$`,
)

// known are public values of such members: the pages of simulated vendors show their passwords.
var known = map[string]bool{"1234": true}

// minLength is the length of the shortest secrets to search for. Shorter ones occur by chance wherever there are
// numbers.
const minLength = 4

// Ledger contains the secrets and error responses of a run. Its zero value is empty.
type Ledger struct {
	// Random means that there are many random PINs. Some of them equal a duration or a number of rows by chance, so
	// they are searched as separate values only, unless they start with 0.
	Random bool

	mu             sync.Mutex
	secrets        map[string]string // by secret: its kind
	errorResponses bytes.Buffer
}

// Learn adds a secret. It returns false if the secret is too short or known to be public.
func (l *Ledger) Learn(what, secret string) bool {
	if len(secret) < minLength || known[secret] {
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

// Count returns the number of learned secrets of a kind: the name of a member, or "credential".
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

// ErrorResponses returns the bodies of all responses with status 400 and above.
func (l *Ledger) ErrorResponses() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.errorResponses.Bytes())
}

// Watch returns a handler that learns from all requests to next and from its successful responses.
func (l *Ledger) Watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		l.learnRequest(r, body)
		answer := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		if answer.status < 400 {
			l.learnJSON(answer.body.Bytes())
			return
		}
		refusal := fmt.Sprintf("%s %d %s\n", r.URL.Path, answer.status, answer.body.Bytes())
		for _, address := range []*regexp.Regexp{connectPage, vendorsAddress} { // a page contains its own token
			if m := address.FindStringSubmatch(r.URL.Path); m != nil {
				refusal = strings.ReplaceAll(refusal, m[1], "…")
			}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errorResponses.WriteString(refusal)
	})
}

// publishable is the prefix of public keys.
const publishable = "seam_pk"

// learnRequest learns from a request regardless of its result, because rejected values are secret, too. A PIN that is
// used on one lock opens another, and a mistyped password reveals most of the right one.
func (l *Ledger) learnRequest(r *http.Request, body []byte) {
	l.learnURL(r.URL.Path)
	l.learnForm(r.URL.RawQuery)
	for name, values := range r.Header {
		for _, v := range values {
			l.walk(name, v)
			if strings.Contains(strings.ToLower(name), "signature") {
				l.learnSignatures(v)
			}
		}
	}
	if _, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && !strings.HasPrefix(token, publishable) {
		l.Learn("credential", token)
		if _, password, ok := r.BasicAuth(); ok {
			l.Learn("password", password)
		}
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		l.learnForm(string(body))
		return
	}
	l.learnJSON(body)
}

// learnSignatures learns from a header that signs a request. It has one signature or more, each of which may follow a
// version and a comma.
func (l *Ledger) learnSignatures(header string) {
	for _, one := range strings.Fields(header) {
		if _, unversioned, found := strings.Cut(one, ","); found {
			one = unversioned
		}
		l.Learn("signature", one)
	}
}

// learnJSON learns from a JSON document, even if it is malformed.
func (l *Ledger) learnJSON(document []byte) {
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

// pairs matches members of truncated or malformed JSON.
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
	// a PIN as a number, which is rejected
	case json.Number:
		l.walk(name, v.String())
	case string:
		if isSecret(name) && !strings.HasPrefix(v, publishable) {
			l.Learn(name, v)
		}
		l.learnURL(v)
	}
}

// learnURL learns from a URL or path that grants access to anyone who knows it: of a connect page, or for a vendor's
// events.
func (l *Ledger) learnURL(url string) {
	if m := connectPage.FindStringSubmatch(url); m != nil {
		l.Learn("connect page", m[1])
	}
	if m := vendorsAddress.FindStringSubmatch(url); m != nil {
		l.Learn("address for a vendor", m[1])
	}
}

var (
	connectPage    = regexp.MustCompile(`^(?:https?://[^/]+)?/connect/([\w-]{16,})(?:[/?]|$)`)
	vendorsAddress = regexp.MustCompile(`^(?:https?://[^/]+)?/vendors/(?:app/)?[\w-]+/([\w-]{16,})$`)
)

func (l *Ledger) learnForm(encoded string) {
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

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(data []byte) (int, error) {
	r.body.Write(data)
	return r.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
