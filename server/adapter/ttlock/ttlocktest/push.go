package ttlocktest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// SetPushURL sets the callback URL of the application. Without one, the cloud pushes nothing.
func (s *Server) SetPushURL(to string) { s.change(func() { s.pushURL = to }) }

// Push sends a push, which anyone could have sent: pushes are not signed.
func (s *Server) Push(fields map[string]string) { s.push(fields) }

// FailLater reports that a lock did not take a command for a code that it fetched later.
func (s *Server) FailLater(n int, id string, errcode int) {
	s.push(map[string]string{
		"notifyType": "4", "lockId": s.ID(n), "uid": strconv.Itoa(UserID), "objectType": "2", "objectId": id,
		"errcode": strconv.Itoa(errcode),
	})
}

// WaitForPushes waits until all pushes are answered.
func (s *Server) WaitForPushes() { s.pushes.Wait() }

// pushRecord stores a record of a lock and pushes it.
func (s *Server) pushRecord(n int, r record) {
	s.mu.Lock()
	l := s.nth(n)
	r.ID, r.Lock, r.At = s.nextID(), l.id, time.Now().UnixMilli()
	l.records = append(l.records, r)
	s.mu.Unlock()
	r.ID, r.Lock = 0, 0
	data, err := json.Marshal([]record{r})
	if err != nil {
		s.t.Error(err)
	}
	s.push(map[string]string{
		"notifyType": "1", "lockId": s.ID(n), "lockMac": mac(l.id), "records": string(data),
	})
}

// push sends a form to the callback URL, without waiting for the response.
func (s *Server) push(fields map[string]string) {
	s.mu.Lock()
	to, times := s.pushURL, 1
	if s.opts.DuplicatePushes {
		times = 2
	}
	s.mu.Unlock()
	if to == "" {
		return
	}
	form := url.Values{}
	for name, value := range fields {
		form.Set(name, value)
	}
	for range times {
		s.pushes.Go(func() { s.post(to, form) })
	}
}

func (s *Server) post(to string, form url.Values) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // the receiver has ended
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode == http.StatusOK && string(text) != "success" {
		s.t.Errorf("the receiver of a push answers %q instead of \"success\"", text)
	}
}
