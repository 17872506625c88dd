package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Stories about webhooks, about operations in flight during the backup, and about repeated requests.

// hook creates a webhook to a path of the receiver.
func (s *scene) hook(path string) (id, secret string) {
	s.Helper()
	made := s.ask("/webhooks/create", told{"url": s.receiver + path})
	return made.text("webhook", "webhook_id"), made.text("webhook", "secret")
}

// signs reports whether the content was signed with a secret.
func (a arrival) signs(secret string) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, a.content)
	return slices.Contains(strings.Fields(a.signature), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

func deletedHook(s *scene) (since, then func(*scene)) {
	id, _ := s.hook("/deleted")
	var late string
	return func(s *scene) {
			s.change("/webhooks/delete", "webhook_id", id)
			late, _ = s.hook("/late")
		}, func(s *scene) {
			s.until("it receives events with PINs", func() bool {
				return slices.ContainsFunc(
					s.got("/deleted", "access_code.set_on_device"),
					func(a arrival) bool { return a.event.text("code") != "" },
				)
			})
			if status, _ := s.try(
				s.key,
				"/webhooks/get",
				told{"webhook_id": late},
			); status != http.StatusNotFound ||
				len(s.got("/late", "")) > 0 {
				s.Errorf(
					"a webhook created later is answered %d and has received %d events",
					status,
					len(s.got("/late", "")),
				)
			}
		}
}

func rotated(s *scene) (since, then func(*scene)) {
	ids, secrets, after := map[string]string{}, map[string][]string{}, ""
	for _, path := range []string{"/rotated", "/again"} {
		id, secret := s.hook(path)
		ids[path], secrets[path] = id, []string{secret}
	}
	*s.early = append(*s.early, func(s *scene) {
		after = s.ok("webhooks", "rotate-secret", "--overlap", "0", ids["/again"])
	})
	return func(s *scene) {
			for path, id := range ids {
				secrets[path] = append(secrets[path], s.ok("webhooks", "rotate-secret", "--overlap", "0", id))
				*s.changed = append(*s.changed, id)
			}
		}, func(s *scene) {
			for path, c := range map[string]struct {
				signs string
				not   []string
			}{"/rotated": {secrets["/rotated"][0], secrets["/rotated"][1:]}, "/again": {after, secrets["/again"]}} {
				s.until("it receives an event", func() bool { return len(s.got(path, "")) > 0 })
				for _, a := range s.got(path, "") {
					if !a.signs(c.signs) || slices.ContainsFunc(c.not, a.signs) {
						s.Errorf("%s has another signature", path)
					}
				}
			}
		}
}

// Pending deliveries are sent again, and only those.
func due(s *scene) (since, then func(*scene)) {
	open := s.keep(s.shut, "/due")
	s.hook("/due")
	id := s.code(s.devices["august"], told{"name": "Due", "code": "410050"})
	s.until("a delivery waits", func() bool { return s.has("/due", "", id) })
	waits := s.got("/due", "")[0].event.text("event_id")
	return func(*scene) { open() },
		func(s *scene) {
			s.until("it receives the event again", func() bool { return s.has("/due", "", waits) })
			for _, a := range s.got("/due", "") {
				if event := a.event.text("event_id"); !strings.HasPrefix(a.content, event+".") {
					s.Errorf("%s has another id", a.event.text("event_type"))
				}
			}
		}
}

// A code that is being set during the backup is on the lock once. A code that is being deleted is removed, even if
// another code has its PIN now.
func underWay(s *scene) (since, then func(*scene)) {
	coming, going := s.busy["august"], s.busy["yale"]
	arrive := s.keep(s.held, "POST /locks/"+coming.ref+"/access_codes")
	made := s.ask("/access_codes/create", told{"device_id": coming.id, "name": "Coming", "code": "410060"}).
		text("access_code", "access_code_id")
	leaving := s.code(going, told{"name": "Going", "code": "410061"})
	taken := "DELETE /access_codes/" + s.opens(going, "410061").text("access_code_id")
	leave := s.keep(s.held, taken)
	s.ask("/access_codes/delete", told{"access_code_id": leaving})
	s.until(
		"both are under way",
		func() bool { return s.asked(taken) > 0 && s.asked("POST /locks/"+coming.ref+"/access_codes") > 0 },
	)
	return func(s *scene) {
			arrive()
			leave()
			s.settles(made, "set")
			s.until("the other is off", func() bool { return len(s.onLock(going, "410061")) == 0 })
			s.code(going, told{"name": "Next", "code": "410061"})
		}, func(s *scene) {
			s.settles(made, "set")
			s.opens(coming, "410060")
			if slices.ContainsFunc(s.unmanaged(coming.id), func(c told) bool { return c.text("code") == "410060" }) {
				s.Error("it is listed as unmanaged, too")
			}
			s.until("the other is deleted", func() bool {
				status, _ := s.try(s.key, "/access_codes/get", told{"access_code_id": leaving})
				return status == http.StatusNotFound
			})
			s.stranger(going, "410061")
			if on := s.opens(going, "410061"); on.text("name") != "Next" {
				s.Errorf("the lock has %q", on.text("name"))
			}
		}
}

// A restore does not open a door, whether the unlock command of before the backup was sent or not.
func bolts(s *scene) (since, then func(*scene)) {
	begun, waiting := s.busy["nuki"], s.busy["tedee"]
	command := func(d latch) string { return "POST /locks/" + d.ref + "/actions" }
	write := "POST /locks/" + waiting.ref + "/access_codes"
	unlock := func(d latch) string {
		return s.ask("/locks/unlock_door", told{"device_id": d.id}).text("action_attempt", "action_attempt_id")
	}
	open, finish := s.keep(s.held, command(begun)), s.keep(s.held, write)
	s.ask("/access_codes/create", told{"device_id": waiting.id, "name": "Before", "code": "41973"})
	s.until("the lock is busy", func() bool { return s.asked(write) > 0 })
	attempts := map[latch]string{begun: unlock(begun), waiting: unlock(waiting)}
	s.until("a command is sent", func() bool { return s.asked(command(begun)) > 0 })
	sent := map[latch]int{}
	return func(s *scene) {
			open()
			finish()
			for d, id := range attempts {
				s.until("the command has ended", func() bool { // also with an error, if the backup took long
					return s.ask("/action_attempts/get", told{"action_attempt_id": id}).
						text("action_attempt", "status") !=
						"pending"
				})
				s.by(d.token, http.MethodPost, "/locks/"+d.ref+"/keypad/lock", nil)
				sent[d] = s.asked(command(d))
			}
		}, func(s *scene) {
			for d, id := range attempts {
				var a told
				s.until("the attempt has ended", func() bool {
					a = s.ask("/action_attempts/get", told{"action_attempt_id": id})
					return a.text("action_attempt", "status") != "pending"
				})
				if n := s.asked(
					command(d),
				); n != sent[d] ||
					s.by(d.token, http.MethodGet, "/locks/"+d.ref+"/memory", nil).at("locked") != true {
					s.Errorf("the command was sent %d times, and before the restore %d", n, sent[d])
				}
				if a.text("action_attempt", "status") != "error" {
					s.Errorf("the attempt ends with %s", a.text("action_attempt", "status"))
				}
			}
		}
}

// repeats sends a request with an Idempotency-Key.
func (s *scene) repeats(key string, in told) (status int, replayed bool, out told) {
	s.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		s.Fatal(err)
	}
	req, err := http.NewRequestWithContext(
		s.Context(),
		http.MethodPost,
		s.server.URL+"/access_codes/create",
		strings.NewReader(string(body)),
	)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		s.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Idempotency-Replayed") == "true", out
}

func repeated(s *scene) (since, then func(*scene)) {
	d := s.devices["august"]
	known := told{"device_id": d.id, "name": "Known", "code": "410070"}
	with, without := told{
		"device_id": d.id,
		"name":      "With a PIN",
		"code":      "410071",
	}, told{
		"device_id": d.id,
		"name":      "Without",
	}
	_, _, first := s.repeats("known", known)
	var pin string
	return func(s *scene) {
			s.repeats("with", with)
			_, _, made := s.repeats("without", without)
			pin = made.text("access_code", "code")
			s.opens(d, "410071")
			s.opens(d, pin)
		}, func(s *scene) {
			if _, replayed, again := s.repeats(
				"known",
				known,
			); !replayed ||
				again.text("access_code", "access_code_id") != first.text("access_code", "access_code_id") {
				s.Errorf("a request from before the backup runs again; replayed: %v", replayed)
			}
			s.stranger(d, pin)
			s.stranger(d, "410071")
			if status, replayed, refused := s.repeats(
				"with",
				with,
			); status != http.StatusConflict || replayed ||
				refused.text("error", "type") != "duplicate_access_code" {
				s.Errorf("creating a code with a PIN is answered %d, %s", status, refused.text("error", "type"))
			}
			_, replayed, again := s.repeats("without", without)
			if other := again.text("access_code", "code"); replayed || other == "" || other == pin {
				s.Errorf("a code without a PIN is created again with another PIN: %v", other != "" && other != pin)
			} else {
				s.opens(d, other)
			}
			s.opens(d, pin)
		}
}

// tellsNothingElse checks that events after the restore are either new or identical to earlier ones.
func (s *scene) tellsNothingElse() {
	s.Helper()
	was := map[string]string{}
	for _, a := range s.earlier {
		was[a.event.text("event_id")] = a.event.text("event_type") + a.event.text("occurred_at")
	}
	for event, want := range map[string]int{
		s.earlier[0].event.text("event_id"):                http.StatusOK,
		s.earlier[len(s.earlier)-1].event.text("event_id"): http.StatusNotFound,
	} {
		if status, _ := s.try(s.key, "/events/get", told{"event_id": event}); status != want {
			s.Errorf("an event from before the restore is answered %d, want %d", status, want)
		}
	}
	for _, a := range s.got("/all", "") {
		if before, known := was[a.event.text("event_id")]; known &&
			before != a.event.text("event_type")+a.event.text("occurred_at") {
			s.Errorf("%s has the identifier of another event", a.event.text("event_type"))
		}
		if a.event.text("event_id") == s.earlier[0].event.text("event_id") {
			s.Errorf("%s from before the backup is delivered again", a.event.text("event_type"))
		}
		if at, err := time.Parse(
			time.RFC3339,
			a.event.text("occurred_at"),
		); err != nil ||
			at.After(time.Now().Add(time.Minute)) {
			s.Errorf("%s occurred at %s", a.event.text("event_type"), a.event.text("occurred_at"))
		}
	}
}
