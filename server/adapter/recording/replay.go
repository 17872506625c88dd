package recording

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Replay returns a handler that answers requests as a recording does. A request matches if its method, path, parameters,
// and body are those of a recorded one, else if its method and path are. Requests that match several exchanges receive
// their responses in order, and the last one from then on. Other requests receive 404.
func Replay(dir string) (http.Handler, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the directory %s has no recording", dir)
	}
	slices.Sort(files)
	p := &player{redactor: newRedactor(), answers: map[string][]Exchange{}}
	p.redactor.replaying = true
	all := make([]Exchange, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // a test names the directory
		if err != nil {
			return nil, fmt.Errorf("read the recording: %w", err)
		}
		if err := json.Unmarshal(data, &all[i]); err != nil {
			return nil, fmt.Errorf("read the recording %s: %w", file, err)
		}
		for _, body := range []json.RawMessage{all[i].Request, all[i].Response} {
			if value, err := decode(body); err == nil {
				p.learn("", value)
			}
		}
	}
	for _, e := range all {
		if e.Status == 0 {
			continue
		}
		exact, similar := p.keys(e)
		p.answers[exact] = append(p.answers[exact], e)
		p.answers[similar] = append(p.answers[similar], e)
	}
	return p, nil
}

// player replays a recording.
type player struct {
	mu       sync.Mutex
	redactor *redactor
	answers  map[string][]Exchange // that are left
}

// learn collects the placeholders of a recorded body.
func (p *player) learn(key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, one := range v {
			p.learn(k, one)
		}
	case []any:
		for _, one := range v {
			p.learn(key, one)
		}
	case string:
		p.redactor.taken[v] = p.redactor.taken[v] || isIdentifier(key)
	case json.Number:
		p.redactor.taken[v.String()] = p.redactor.taken[v.String()] || isIdentifier(key)
	}
}

// keys returns what identifies a request exactly, and what identifies similar ones.
func (p *player) keys(e Exchange) (exact, similar string) {
	body := e.Request
	if value, err := decode(body); err == nil {
		body, _ = json.Marshal(p.redactor.value("", value)) // it was decoded from JSON
	}
	similar = e.Method + " " + strings.TrimRight(e.Path, "/")
	exact = similar + "?" + p.redactor.values(e.Query).Encode() + " " + p.redactor.values(e.Form).Encode() + " " +
		string(body)
	return exact, similar
}

// ServeHTTP implements http.Handler.
func (p *player) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	request := p.redactor.request(r, sent)
	exact, similar := p.keys(request)
	for _, key := range []string{exact, similar} {
		left := p.answers[key]
		if len(left) == 0 {
			continue
		}
		if len(left) > 1 {
			p.answers[key] = left[1:]
		}
		left[0].send(w)
		return
	}
	http.Error(w, "the recording has no "+similar, http.StatusNotFound)
}

func (e Exchange) send(w http.ResponseWriter) {
	for _, name := range []string{"Content-Type", "Retry-After"} {
		if value := e.Headers[name]; value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(e.Status)
	body := []byte(e.Response)
	if body == nil {
		body = []byte(e.Text)
	}
	_, _ = w.Write(body) // the client is gone
}
