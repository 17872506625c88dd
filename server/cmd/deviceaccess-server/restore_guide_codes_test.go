package main

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Stories about codes. Each prepares something before the backup. It returns what happens after the backup, and what
// must hold after the restore.

func newCode(s *scene) (since, then func(*scene)) {
	d := s.devices["august"]
	var was string
	return func(s *scene) {
			was = s.code(d, told{"name": "Since", "code": "410001"})
		}, func(s *scene) {
			id := s.stranger(d, "410001")
			s.until(
				"the webhook receives the event",
				func() bool { return s.has("/all", "access_code.unmanaged.created", id) },
			)
			s.opens(d, "410001")
			if status, _ := s.try(
				s.key,
				"/access_codes/get",
				told{"access_code_id": was},
			); status != http.StatusNotFound {
				s.Errorf("its earlier id is answered %d", status)
			}
			status, refusal := s.try(
				s.key,
				"/access_codes/create",
				told{"device_id": d.id, "name": "Since", "code": "410001"},
			)
			if status != http.StatusConflict || refusal.text("error", "type") != "duplicate_access_code" ||
				!strings.Contains(refusal.text("error", "message"), id) {
				s.Errorf("creating it again is answered %d, %s", status, refusal.text("error", "type"))
			}
			s.ask("/access_codes/unmanaged/delete", told{"access_code_id": id, "sync": true})
			if len(s.onLock(d, "410001")) > 0 {
				s.Error("it opens although it was deleted")
			}
		}
}

func deletedCode(s *scene) (since, then func(*scene)) {
	d, hidden := s.devices["august"], s.devices["smartthings"]
	one, other := s.code(
		d,
		told{"name": "Deleted", "code": "410002"},
	), s.code(
		hidden,
		told{"name": "Deleted", "code": "410003"},
	)
	return func(s *scene) {
			s.change("/access_codes/delete", "access_code_id", one, told{"sync": true})
			s.change("/access_codes/delete", "access_code_id", other, told{"sync": true})
			if len(s.onLock(d, "410002"))+len(s.onLock(hidden, "410003")) > 0 {
				s.Error("a deleted code is on its lock")
			}
		}, func(s *scene) {
			s.opens(d, "410002")
			s.opens(hidden, "410003")
			s.settles(one, "set")
			s.settles(other, "set")
			s.until("the webhook learns that the code was deleted and set again", func() bool {
				return s.has("/all", "access_code.deleted_external_to_seam", one) &&
					s.has("/all", "access_code.set_on_device", one)
			})
			s.ask("/access_codes/delete", told{"access_code_id": one, "sync": true})
			if len(s.onLock(d, "410002")) > 0 {
				s.Error("it opens although it was deleted again")
			}
		}
}

func deletedAllowed(s *scene) (since, then func(*scene)) {
	d := s.devices["august"]
	id := s.code(d, told{"name": "Allowed", "code": "410004", "is_external_modification_allowed": true})
	return func(s *scene) {
			s.change("/access_codes/delete", "access_code_id", id, told{"sync": true})
		}, func(s *scene) {
			c := s.settles(id, "unset")
			if !warned(c, "warnings", "external_modification_in_effect") || len(s.onLock(d, "410004")) > 0 {
				s.Errorf("it has the warnings %v", c.at("warnings"))
			}
			s.ask("/access_codes/update", told{"access_code_id": id, "name": "Changed", "sync": true})
			s.opens(d, "410004")
		}
}

func changedPIN(s *scene) (since, then func(*scene)) {
	d := s.devices["august"]
	id := s.code(d, told{"name": "Leaked", "code": "410005"})
	return func(s *scene) {
			s.change("/access_codes/update", "access_code_id", id, told{"code": "410006", "sync": true})
			if len(s.onLock(d, "410005")) > 0 {
				s.Error("the lock opens with the previous PIN")
			}
		}, func(s *scene) {
			s.opens(d, "410005")
			s.until("the newer PIN is removed", func() bool { return len(s.onLock(d, "410006")) == 0 })
			if c := s.settles(id, "set"); c.text("code") != "410005" {
				s.Error("the server shows the newer PIN")
			}
		}
}

func changedTime(s *scene) (since, then func(*scene)) {
	d, begin := s.devices["august"], time.Now().UTC().Truncate(time.Second)
	end := begin.Add(48 * time.Hour)
	id := s.code(d, told{"name": "Long", "code": "410007", "starts_at": begin, "ends_at": end})
	return func(s *scene) {
			s.change("/access_codes/update", "access_code_id", id, told{"ends_at": begin.Add(time.Hour), "sync": true})
		}, func(s *scene) {
			s.until("its time is long on the lock", func() bool {
				until, err := time.Parse(time.RFC3339, s.opens(d, "410007").text("ends_at"))
				return err == nil && until.Equal(end)
			})
		}
}

func changedAllowed(s *scene) (since, then func(*scene)) {
	d, chosen := s.devices["august"], s.devices["salto_ks"]
	id := s.code(d, told{"name": "Theirs", "code": "410008", "is_external_modification_allowed": true})
	theirs := s.code(chosen, told{"name": "Chosen"})
	first := s.get(theirs).text("code")
	return func(s *scene) {
			s.change("/access_codes/update", "access_code_id", id, told{"code": "410009", "sync": true})
			on := s.opens(chosen, first)
			s.by(
				chosen.token,
				http.MethodPatch,
				"/locks/"+chosen.ref+"/keypad/codes/"+on.text("access_code_id"),
				told{"code": "410010"},
			)
		}, func(s *scene) {
			for of, code := range map[latch]string{d: id, chosen: theirs} {
				pin := map[latch]string{d: "410009", chosen: "410010"}[of]
				s.until("the server shows what is on the lock", func() bool { return s.get(code).text("code") == pin })
				s.opens(of, pin)
			}
			if len(s.onLock(d, "410008"))+len(s.onLock(chosen, first)) > 0 {
				s.Error("the lock has the earlier PIN, too")
			}
		}
}

// A code that is deleted again while its vendor is unreachable never opens the lock.
func deletedBehindAWall(s *scene) (since, then func(*scene)) {
	_, doors := s.account("walled", "august")
	d := doors["august"]
	id := s.code(d, told{"name": "Fired", "code": "410084"})
	*s.early = append(*s.early, func(s *scene) { s.reach("walled", false) })
	return func(s *scene) { s.change("/access_codes/delete", "access_code_id", id, told{"sync": true}) },
		func(s *scene) {
			s.ask("/access_codes/delete", told{"access_code_id": id})
			s.reach("walled", true)
			s.until("the code is deleted", func() bool {
				status, _ := s.try(s.key, "/access_codes/get", told{"access_code_id": id})
				return status == http.StatusNotFound
			})
			if len(s.onLock(d, "410084")) > 0 || s.asked("POST /locks/"+d.ref+"/access_codes") != 1 {
				s.Error("it was set again")
			}
		}
}

// The vendor chooses the PIN: the code that is set again has another one.
func deletedOfVendors(s *scene) (since, then func(*scene)) {
	d := s.devices["salto_ks"]
	id := s.code(d, told{"name": "Gone"})
	pin := s.get(id).text("code")
	return func(s *scene) { s.change("/access_codes/delete", "access_code_id", id, told{"sync": true}) },
		func(s *scene) {
			var c told
			s.until("it is set again", func() bool {
				c = s.get(id)
				return c.text("status") == "set" && s.has("/all", "access_code.set_on_device", id) &&
					len(s.onLock(d, c.text("code"))) == 1
			})
			if c.text("code") == pin {
				s.Error("it has the earlier PIN")
			}
		}
}

func changedHidden(s *scene) (since, then func(*scene)) {
	d := s.devices["smartthings"]
	id := s.code(d, told{"name": "Hidden", "code": "410011"})
	return func(s *scene) {
			s.change("/access_codes/update", "access_code_id", id, told{"code": "410012", "sync": true})
		}, func(s *scene) {
			if c := s.settles(id, "set"); c.text("code") != "410011" || len(s.onLock(d, "410012")) != 1 {
				s.Error("the server shows the newer PIN, which it cannot know, or the lock has it no more")
			}
			s.ask("/access_codes/update", told{"access_code_id": id, "code": "410013", "sync": true})
			s.opens(d, "410013")
			if len(s.onLock(d, "410011"))+len(s.onLock(d, "410012")) > 0 {
				s.Error("an earlier PIN opens, too")
			}
		}
}

// Another code has the PIN now, so the lock cannot have both.
func takenPIN(s *scene) (since, then func(*scene)) {
	d := s.devices["august"]
	deleted, changed := s.code(
		d,
		told{"name": "First", "code": "410014"},
	), s.code(
		d,
		told{"name": "First", "code": "410015"},
	)
	return func(s *scene) {
			s.change("/access_codes/delete", "access_code_id", deleted, told{"sync": true})
			s.change("/access_codes/update", "access_code_id", changed, told{"code": "410016", "sync": true})
			s.code(d, told{"name": "Second", "code": "410014"})
			s.code(d, told{"name": "Second", "code": "410015"})
		}, func(s *scene) {
			for id, pin := range map[string]string{deleted: "410014", changed: "410015"} {
				other := s.stranger(d, pin)
				s.until(
					"the code waits for its PIN",
					func() bool { return warned(s.get(id), "errors", "duplicate_code_on_device") },
				)
				if on := s.opens(d, pin); on.text("name") != "Second" {
					s.Errorf("the lock calls it %q", on.text("name"))
				}
				if newer := len(s.onLock(d, "410016")); id == changed && newer != 1 {
					s.Errorf("the newer PIN opens %d times meanwhile", newer)
				}
				s.ask("/access_codes/unmanaged/delete", told{"access_code_id": other, "sync": true})
				s.settles(id, "set")
				if on := s.opens(d, pin); on.text("name") != "First" {
					s.Errorf("after that the lock calls it %q", on.text("name"))
				}
			}
			if len(s.onLock(d, "410016")) > 0 {
				s.Error("the newer PIN still opens")
			}
		}
}

// A lock does not list offline codes.
func offlineCode(s *scene) (since, then func(*scene)) {
	d := s.devices["igloohome"]
	var pin string
	return func(s *scene) {
			id := s.ask("/access_codes/create", told{
				"device_id": d.id, "name": "Cabin", "is_offline_access_code": true,
				"starts_at": time.Now(), "ends_at": time.Now().Add(5 * time.Hour),
			}).text("access_code", "access_code_id")
			s.until("the vendor has created it", func() bool { pin = s.get(id).text("code"); return pin != "" })
		}, func(s *scene) {
			for _, c := range s.unmanaged(d.id) {
				if c.text("code") == pin {
					s.Error("it is listed")
				}
			}
			if entered := s.by(
				d.token,
				http.MethodPost,
				"/locks/"+d.ref+"/keypad/enter",
				told{"code": pin},
			); entered.at(
				"unlocked",
			) != true {
				s.Error("it does not open")
			}
		}
}

// A pulled backup code returns to the pool, although it was handed out.
func pulledSpare(s *scene) (since, then func(*scene)) {
	d := s.devices["yale"]
	in := told{
		"name":                        "Guest",
		"code":                        "410020",
		"use_backup_access_code_pool": true,
		"starts_at":                   time.Now(),
		"ends_at":                     time.Now().Add(5 * time.Hour),
	}
	id := s.code(d, in)
	s.until("there is a spare", func() bool { return s.get(id).at("is_backup_access_code_available") == true })
	var pin string
	return func(s *scene) {
			pin = s.change("/access_codes/pull_backup_access_code", "access_code_id", id).text("access_code", "code")
		}, func(s *scene) {
			if s.opens(d, pin); s.get(id).text("pulled_backup_access_code_id") != "" {
				s.Error("it is known to be pulled")
			}
			for _, c := range append(s.unmanaged(d.id), s.ask("/access_codes/list", told{"device_id": d.id}).all("access_codes")...) {
				if c.text("code") == pin {
					s.Errorf("it is listed, managed: %v", c.at("is_managed"))
				}
			}
			if again := s.ask("/access_codes/pull_backup_access_code", told{"access_code_id": id}).
				text("access_code", "code"); again != pin {
				s.Error("another backup code comes next, so the test proves nothing about reuse")
			}
		}
}

// Unmanaged codes are not restored on the lock.
func strangers(s *scene) (since, then func(*scene)) {
	d := s.devices["yale"]
	var deleted, adopted told
	for _, c := range s.unmanaged(d.id) {
		deleted, adopted = adopted, c
	}
	return func(s *scene) {
			s.change(
				"/access_codes/unmanaged/delete",
				"access_code_id",
				deleted.text("access_code_id"),
				told{"sync": true},
			)
			s.change(
				"/access_codes/unmanaged/convert_to_managed",
				"access_code_id",
				adopted.text("access_code_id"),
				told{"sync": true},
			)
			s.change(
				"/access_codes/update",
				"access_code_id",
				adopted.text("access_code_id"),
				told{"code": "410080", "sync": true},
			)
		}, func(s *scene) {
			if id := s.stranger(d, "410080"); id != adopted.text("access_code_id") {
				s.Errorf("it is %s, and was %s", id, adopted.text("access_code_id"))
			}
			s.until("the other is listed no more", func() bool {
				return !slices.ContainsFunc(
					s.unmanaged(d.id),
					func(c told) bool { return c.text("code") == deleted.text("code") },
				)
			})
			if len(s.onLock(d, deleted.text("code"))) > 0 {
				s.Error("a code that was never managed is set again")
			}
		}
}

// A code that has expired since is not set again, whether the lock keeps time frames or not.
func ended(s *scene) (since, then func(*scene)) {
	pins, ids := map[string]string{"august": "410081", "smartthings": "410082"}, map[string]string{}
	for lock, pin := range pins {
		ids[lock] = s.code(
			s.devices[lock],
			told{"name": "Ended", "code": pin, "starts_at": time.Now(), "ends_at": time.Now().Add(2 * time.Hour)},
		)
	}
	*s.early = append(*s.early, func(s *scene) {
		s.exec(
			"update access_codes set starts_at = starts_at - interval '1 day', ends_at = ends_at - interval '1 day' where " +
				"name = 'Ended'",
		)
	})
	return func(s *scene) {
			for _, id := range ids {
				s.change("/access_codes/delete", "access_code_id", id, told{"sync": true})
			}
		}, func(s *scene) {
			for lock, pin := range pins {
				s.until("the code is deleted", func() bool {
					status, _ := s.try(s.key, "/access_codes/get", told{"access_code_id": ids[lock]})
					return status == http.StatusNotFound
				})
				if len(s.onLock(s.devices[lock], pin)) > 0 || s.has("/all", "access_code.set_on_device", ids[lock]) {
					s.Errorf("%s has it again", lock)
				}
			}
		}
}

func leftAlone(s *scene) (since, then func(*scene)) {
	d := s.devices["kwikset"]
	id := s.code(d, told{"name": "Left alone", "code": "410083"})
	return func(s *scene) {
			s.change("/devices/update", "device_id", d.id, told{"is_managed": false})
			s.by(
				d.token,
				http.MethodDelete,
				"/locks/"+d.ref+"/keypad/codes/"+s.opens(d, "410083").text("access_code_id"),
				nil,
			)
		}, func(s *scene) {
			s.opens(d, "410083")
			s.settles(id, "set")
			s.ask("/devices/get", told{"device_id": d.id})
		}
}
