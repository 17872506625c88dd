package nukitest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

func (s *Server) webhookRoutes(mux *http.ServeMux) {
	s.handle(mux, "GET /api/decentralWebhook", func(*http.Request) (any, error) {
		out := []webhook{}
		for _, h := range s.hooks {
			h.Secret = ""
			out = append(out, h)
		}
		return out, nil
	})
	s.handle(mux, "PUT /api/decentralWebhook", func(r *http.Request) (any, error) {
		var h webhook
		if json.NewDecoder(r.Body).Decode(&h) != nil {
			return nil, refusal{status: http.StatusBadRequest, text: "bad parameter"}
		}
		s.ids++
		h.ID, h.Secret = s.ids, "secret-of-webhook-"+strconv.Itoa(s.ids)
		s.hooks = append(s.hooks, h)
		return h, nil
	})
	s.handle(mux, "DELETE /api/decentralWebhook/{webhook}", func(r *http.Request) (any, error) {
		s.hooks = slices.DeleteFunc(
			s.hooks,
			func(h webhook) bool { return strconv.Itoa(h.ID) == r.PathValue("webhook") },
		)
		return nil, nil
	})
}

// Webhooks returns the URLs that receive pushes.
func (s *Server) Webhooks() (urls []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hooks {
		urls = append(urls, h.URL)
	}
	return urls
}

// DropWebhooks switches all webhooks off, as the vendor does after too many errors.
func (s *Server) DropWebhooks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = nil
}

// Sign returns the signature of a push.
func Sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// push sends a push to all webhooks. Its body has PINs in clear.
func (s *Server) push(feature string, body map[string]any) {
	body["feature"] = feature
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	times := 1
	if s.options.RepeatPushes {
		times = 2
	}
	for _, h := range s.hooks {
		if !slices.Contains(h.Features, feature) {
			continue
		}
		header := http.Header{"Content-Type": {"application/json"}, "X-Nuki-Signature-Sha256": {Sign(h.Secret, data)}}
		for range times {
			s.post(h.URL, header.Clone(), data)
		}
	}
}

func (s *Server) pushState(l *Lock) {
	w := l.wire()
	s.push("DEVICE_STATUS", map[string]any{"smartlockId": l.ID, "state": w.State, "serverState": w.Server})
}

func (s *Server) pushCode(a auth, deleted bool) {
	s.push("DEVICE_AUTHS", map[string]any{"deleted": deleted, "smartlockAuth": a})
}

func (s *Server) pushLog(e logEntry) {
	s.push("DEVICE_LOGS", map[string]any{"smartlockLog": e})
}
