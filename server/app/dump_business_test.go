package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/secretscan"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/testenv"
)

// business is a server with one client per lock. The clients remember what the server has acknowledged.
type business struct {
	*old
	secrets    secretscan.Ledger
	endpoint   *endpoint
	receiver   string
	url, cloud string
	devices    []string
	main       string // webhook for all events
	stop       func(context.Context) error
	end        func() // stops the clients and the server

	mu      sync.Mutex
	answers int
	codes   map[string]kept
	hooks   map[string]string // secret by id
	paths   map[string]string // path by id
	gone    map[string]bool   // deleted codes
}

// kept is a code as last acknowledged. Its name encodes its identity, and its PIN follows from that.
type kept struct{ client, code, version int }

func (k kept) name() string { return fmt.Sprintf("%d.%d.%d", k.client, k.code, k.version) }

// pin returns digits that occur nowhere else: numbers do not start with 0.
func (k kept) pin() string { return fmt.Sprintf("0%d%03d%03d", k.client+1, k.code, k.version) }

func (b *business) answered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answers
}

// acknowledged returns a copy of what the server has acknowledged so far.
func (b *business) acknowledged() *business {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &business{
		codes: maps.Clone(b.codes),
		hooks: maps.Clone(b.hooks),
		paths: maps.Clone(b.paths),
		gone:  maps.Clone(b.gone),
	}
}

// ask sends a request, and calls note with the response as soon as it arrives.
func (b *business) ask(path string, in map[string]any, note func(id string)) (id string) {
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequestWithContext(
		context.WithoutCancel(b.Context()),
		http.MethodPost,
		b.url+path,
		bytes.NewReader(body),
	)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Errorf("%s: %v", path, err)
		return ""
	}
	defer res.Body.Close()
	var out struct {
		Code struct {
			ID string `json:"access_code_id"`
		} `json:"access_code"`
		Webhook struct {
			ID     string `json:"webhook_id"`
			URL    string `json:"url"`
			Secret string `json:"secret"`
		} `json:"webhook"`
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != http.StatusOK {
		b.Errorf("%s is answered %d: %v", path, res.StatusCode, err)
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers++
	if out.Webhook.Secret != "" {
		b.hooks[out.Webhook.ID], b.paths[out.Webhook.ID] = out.Webhook.Secret, strings.TrimPrefix(
			out.Webhook.URL,
			b.receiver,
		)
		return out.Webhook.ID
	}
	note(out.Code.ID)
	return out.Code.ID
}

func (b *business) webhook(path, eventType string) string {
	return b.ask("/webhooks/create", map[string]any{"url": b.receiver + path, "event_types": []string{eventType}}, nil)
}

// begin starts a client per lock, which creates, changes, and deletes codes until end is called.
func (b *business) begin() {
	working, leave := context.WithCancel(b.Context())
	var clients sync.WaitGroup
	for client, device := range b.devices {
		clients.Go(func() {
			for n := 0; working.Err() == nil && n < 1000; n++ {
				k := kept{client, n, 0}
				id := b.ask(
					"/access_codes/create",
					map[string]any{"device_id": device, "name": k.name(), "code": k.pin()},
					func(id string) { b.codes[id] = k },
				)
				for id != "" && k.version < 2 {
					k.version++
					b.ask(
						"/access_codes/update",
						map[string]any{"access_code_id": id, "name": k.name(), "code": k.pin()},
						func(string) { b.codes[id] = k },
					)
				}
				if n%30 == 0 {
					b.webhook(fmt.Sprintf("/%d/%d", client, n), "access_code.deleted")
				}
				if id != "" && n%20 != 0 { // the others stay
					b.mu.Lock()
					delete(b.codes, id) // unknown from now on
					b.mu.Unlock()
					b.ask(
						"/access_codes/delete",
						map[string]any{"access_code_id": id},
						func(string) { b.gone[id] = true },
					)
				}
			}
		})
	}
	b.end = sync.OnceFunc(func() {
		leave()
		clients.Wait()
		b.must(b.stop(context.WithoutCancel(b.Context())))
	})
	b.Cleanup(func() { leave(); clients.Wait() })
}

// judge compares the server, which runs on the restored dump, with what was acknowledged before the dump.
func (b *business) judge(before *business, due []string) {
	b.Helper()
	type code struct {
		ID     string `json:"access_code_id"`
		Name   string `json:"name"`
		PIN    string `json:"code"`
		Status string `json:"status"`
		Errors any    `json:"errors"`
	}
	var there map[string]code
	defer func() {
		for id, c := range there {
			if c.Status != "set" {
				b.Logf("code %s, %q, is %s with %v", id, c.Name, c.Status, c.Errors)
			}
		}
	}()
	b.until("all codes are on their locks", func() bool {
		there = map[string]code{}
		for _, device := range b.devices {
			var list struct {
				Codes []code `json:"access_codes"`
			}
			b.post(b.url, "/access_codes/list", fmt.Sprintf(`{"device_id":%q}`, device), &list)
			for _, c := range list.Codes {
				there[c.ID] = c
			}
		}
		return !slices.ContainsFunc(slices.Collect(maps.Values(there)), func(c code) bool { return c.Status != "set" })
	})
	for id, was := range before.codes {
		var now kept
		c := there[id]
		if _, err := fmt.Sscanf(c.Name, "%d.%d.%d", &now.client, &now.code, &now.version); b.after(id) {
			continue // deleted during the dump, which may contain it or not
		} else if err != nil || now.client != was.client || now.code != was.code || now.version < was.version {
			b.Errorf("code %s was acknowledged as %q, and is %q", id, was.name(), c.Name)
		}
	}
	for id, c := range there {
		var now kept
		if _, err := fmt.Sscanf(
			c.Name,
			"%d.%d.%d",
			&now.client,
			&now.code,
			&now.version,
		); err != nil ||
			c.PIN != now.pin() {
			b.Errorf("code %s, %q, has the PIN of another version", id, c.Name)
		}
		if before.gone[id] {
			b.Errorf("code %s, %q, was deleted and is there", id, c.Name)
		}
	}
	var hooks struct {
		Hooks []struct {
			ID     string `json:"webhook_id"`
			Secret string `json:"secret"`
		} `json:"webhooks"`
	}
	b.post(b.url, "/webhooks/list", "{}", &hooks)
	secrets := map[string]string{}
	for _, h := range hooks.Hooks {
		secrets[h.ID] = h.Secret
	}
	for id, secret := range before.hooks {
		if secrets[id] != secret {
			b.Errorf("webhook %s is not there, or has another secret", id)
		}
	}
	if len(before.codes) < 3 || len(before.gone) < 10 || len(before.hooks) < 3 {
		b.Errorf(
			"%d codes, %d deleted ones and %d webhooks were acknowledged before the dump: that is no business",
			len(before.codes),
			len(before.gone),
			len(before.hooks),
		)
	}
	b.until("the pending deliveries have arrived", func() bool {
		got := b.endpoint.got(b.hooks[b.main], "/main")
		return !slices.ContainsFunc(due, func(event string) bool { return !got[event] })
	})
	var first string
	for id := range there {
		first = id
	}
	b.goesOn(before, first)
}

// goesOn checks that the server does new work: it deletes a code, notifies every webhook with the right signature, and
// finds codes on the lock that it does not know.
func (b *business) goesOn(before *business, code string) {
	b.Helper()
	b.endpoint.forget()
	b.ask("/access_codes/delete", map[string]any{"access_code_id": code, "sync": true}, func(string) {})
	b.ask(
		"/access_codes/create",
		map[string]any{"device_id": b.devices[0], "name": "New", "code": "07777777", "sync": true},
		func(string) {},
	)
	b.until("every webhook receives the event with its signature", func() bool {
		for id, path := range before.paths {
			if len(b.endpoint.got(before.hooks[id], path)) == 0 {
				return false
			}
		}
		return true
	})
	b.until("the code from after the dump is found on its lock", func() bool {
		var unmanaged struct {
			Codes []struct {
				PIN string `json:"code"`
			} `json:"access_codes"`
		}
		b.post(b.url, "/access_codes/unmanaged/list", fmt.Sprintf(`{"device_id":%q}`, b.devices[0]), &unmanaged)
		return slices.ContainsFunc(unmanaged.Codes, func(c struct {
			PIN string `json:"code"`
		},
		) bool {
			return c.PIN == late.pin()
		})
	})
}

// late is a code that is created after the dump.
var late = kept{8, 0, 0}

// comesLate creates a code after the dump and waits until it is on its lock.
func (b *business) comesLate() {
	b.Helper()
	var id string
	b.ask(
		"/access_codes/create",
		map[string]any{"device_id": b.devices[0], "name": "Late", "code": late.pin()},
		func(made string) { id = made },
	)
	b.until("the late code is on its lock", func() bool {
		var made struct {
			Code struct {
				Status string `json:"status"`
			} `json:"access_code"`
		}
		b.post(b.url, "/access_codes/get", fmt.Sprintf(`{"access_code_id":%q}`, id), &made)
		return made.Code.Status == "set"
	})
}

// stopAtEnd stops a server or a cloud when the test ends.
func stopAtEnd(t *testing.T, stop func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Timeout(time.Minute))
		defer cancel()
		if err := stop(ctx); err != nil {
			t.Error(err)
		}
	})
}

// after reports whether a code was deleted, or its deletion requested, at the end.
func (b *business) after(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, there := b.codes[id]
	return !there
}
