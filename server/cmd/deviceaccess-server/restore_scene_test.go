package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// scene is an installation that is backed up, changed, and restored, as seen by one story.
type scene struct {
	*program
	*outside
	server    *ready
	workspace string
	key       string           // of the workspace
	devices   map[string]latch // by profile
	busy      map[string]latch // more locks, with operations in flight during the backup
	earlier   []arrival        // deliveries to /all before the restore
	changed   *[]string        // ids that the audit log must name: changed after the backup
	restored  *pgx.Conn        // the restored database before its server starts
	early     *[]func(*scene)  // run between the restore and the start of the server
}

// latch is a lock: its device_id, its id at the vendor, and the token of its account.
type latch struct{ id, ref, token string }

// on returns the scene for a subtest.
func (s *scene) on(t *testing.T) *scene {
	p, c := *s.program, *s
	p.T, c.program = t, &p
	return &c
}

// account connects an account with locks and returns once they have been read.
func (s *scene) account(key string, profiles ...string) (id string, doors map[string]latch) {
	s.Helper()
	made, err := s.box.EnsureAccount(sandbox.AccountSpec{Key: key, Profiles: profiles})
	if err != nil {
		s.Fatal(err)
	}
	s.take(made.Token, made.Token)
	id = s.ok(
		"accounts",
		"connect",
		"devicecloud",
		"--url",
		s.cloud+"/of/"+key,
		"--token-file",
		s.file(key, made.Token),
	)
	doors = map[string]latch{}
	for _, l := range made.Locks {
		s.until("the "+l.Profile+" lock is read", func() bool {
			for _, d := range s.ask("/devices/list", told{"connected_account_id": id}).all("devices") {
				if d.text("properties", "name") == l.Name && len(s.unmanaged(d.text("device_id"))) > 0 {
					doors[l.Profile] = latch{d.text("device_id"), l.ID, made.Token}
				}
			}
			return doors[l.Profile].id != ""
		})
	}
	return id, doors
}

// take makes the vendors accept a token.
func (o *outside) take(token, as string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken[token] = as
}

// ask sends a request that must succeed.
func (s *scene) ask(path string, in told) told {
	s.Helper()
	status, out := s.try(s.key, path, in)
	if status != http.StatusOK {
		s.Fatalf("%s is answered %d, %s", path, status, out.text("error", "type"))
	}
	return out
}

// try sends a request with a token.
func (s *scene) try(token, path string, in told) (status int, out told) {
	s.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		s.Fatal(err)
	}
	return s.post(*s.server, token, path, string(body), &out), out
}

// change sends a request about id that the audit log must name.
func (s *scene) change(path, name, id string, more ...told) told {
	s.Helper()
	in := told{name: id}
	for _, m := range more {
		for field, value := range m {
			in[field] = value
		}
	}
	*s.changed = append(*s.changed, id)
	return s.ask(path, in)
}

// code creates a code and returns once it is on its lock.
func (s *scene) code(d latch, in told) (id string) {
	s.Helper()
	in["device_id"], in["sync"] = d.id, true
	return s.ask("/access_codes/create", in).text("access_code", "access_code_id")
}

func (s *scene) get(code string) told {
	s.Helper()
	return told(s.ask("/access_codes/get", told{"access_code_id": code}).at("access_code").(map[string]any))
}

// unmanaged returns the unmanaged codes of a device.
func (s *scene) unmanaged(device string) []told {
	s.Helper()
	return s.ask("/access_codes/unmanaged/list", told{"device_id": device}).all("access_codes")
}

// stranger waits for an unmanaged code with a PIN and returns its id.
func (s *scene) stranger(d latch, pin string) (id string) {
	s.Helper()
	s.until("an unmanaged code is listed", func() bool {
		for _, c := range s.unmanaged(d.id) {
			if c.text("code") == pin {
				id = c.text("access_code_id")
			}
		}
		return id != ""
	})
	return id
}

// by operates or reads a lock or an access system directly at the simulated cloud.
func (s *scene) by(token, method, path string, body any) (out told) {
	s.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.Context(), method, s.cloud+"/sandbox"+path, bytes.NewReader(raw))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode >= http.StatusBadRequest {
		s.Fatalf("%s %s is answered %d", method, path, res.StatusCode)
	}
	return out
}

// onLock returns the codes with a PIN in the memory of a lock.
func (s *scene) onLock(d latch, pin string) (out []told) {
	s.Helper()
	for _, c := range s.by(d.token, http.MethodGet, "/locks/"+d.ref+"/memory", nil).all("access_codes") {
		if c.text("code") == pin {
			out = append(out, c)
		}
	}
	return out
}

// opens waits until a lock has a PIN exactly once.
func (s *scene) opens(d latch, pin string) told {
	s.Helper()
	var on []told
	s.until("the code is on its lock", func() bool { on = s.onLock(d, pin); return len(on) > 0 })
	if len(on) > 1 {
		s.Errorf("the lock has the PIN %d times", len(on))
	}
	return on[0]
}

// settles waits until a code has a status.
func (s *scene) settles(code, status string) (c told) {
	s.Helper()
	s.until("the code is "+status, func() bool { c = s.get(code); return c.text("status") == status })
	return c
}

// warned reports whether a code or a person has an error or warning.
func warned(of told, list, kind string) bool {
	return slices.ContainsFunc(
		of.all(list),
		func(p told) bool { return p.text(strings.TrimSuffix(list, "s")+"_code") == kind },
	)
}

// begin starts a server without simulated locks.
func (s *scene) begin(args ...string) (stop func()) {
	s.Helper()
	r, cmd := s.serve(
		append([]string{"--sandbox=false", "--connect-gateways", "--allow-webhook-prefix", "127.0.0.0/8"}, args...)...)
	*s.server = r
	return func() { s.stop(cmd) }
}

// restoredTo is the directory of the restored data. All later commands use it.
func (s *scene) restoredTo() string { return filepath.Join(s.dir, "restored") }

// passes moves the restored database back in time, since backups are usually older than due times.
func (s *scene) passes(hours int) {
	s.Helper()
	for table, columns := range map[string][]string{
		"action_attempts":    {"created_at", "started_at", "deadline_at"},
		"connected_accounts": {"due_at"},
		"devices":            {"due_at"},
		"acs_systems":        {"due_at"},
		"access_codes":       {"write_at", "applied_at", "next_attempt_at"},
		"webhooks":           {"due_at"},
		"deliveries":         {"next_attempt_at"},
		"leases":             {"held_until"},
	} {
		for _, column := range columns {
			s.exec(fmt.Sprintf("update %s set %s = %[2]s - interval '%d hours'", table, column, hours))
		}
	}
}

// exec changes the restored database before its server starts.
func (s *scene) exec(sql string) {
	s.Helper()
	if _, err := s.restored.Exec(s.Context(), sql); err != nil {
		s.Fatal(err)
	}
}

// open opens the restored database for exec.
func (s *scene) open() (closed func()) {
	s.Helper()
	database, err := pglocal.Open(s.Context(), pglocal.Options{Dir: filepath.Join(s.restoredTo(), "postgres")})
	if err != nil {
		s.Fatal(err)
	}
	if s.restored, err = pgx.Connect(s.Context(), database.DSN("postgres")); err != nil {
		s.Fatal(err)
	}
	return func() {
		if err := errors.Join(s.restored.Close(s.Context()), database.Close(s.Context())); err != nil {
			s.Fatal(err)
		}
	}
}

// mark types a code at the keypad of every lock. marked waits until all these codes are listed, and so all locks have
// been read.
func (s *scene) mark() {
	s.Helper()
	for _, of := range []map[string]latch{s.devices, s.busy} {
		for _, d := range of {
			s.by(d.token, http.MethodPost, "/locks/"+d.ref+"/keypad/codes", told{"name": "Mark", "code": "746283"})
		}
	}
}

func (s *scene) marked() {
	s.Helper()
	for _, of := range []map[string]latch{s.devices, s.busy} {
		for name, d := range of {
			s.until("the "+name+" lock is read", func() bool {
				return slices.ContainsFunc(s.unmanaged(d.id), func(c told) bool { return c.text("name") == "Mark" })
			})
		}
	}
}
