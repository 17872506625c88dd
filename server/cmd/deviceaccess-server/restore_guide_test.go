package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// back is the beginning of a line in the guide about what a restore brings back, and the story that tests it.
type back struct {
	guide, name string
	begin       func(*scene) (since, then func(*scene))
}

var broughtBack = []back{
	{"Codes that were made after the backup", "listed", newCode},
	{"Codes that were made after the backup", "offline", offlineCode},
	{"Codes that were made after the backup", "spare", pulledSpare},
	{"**Codes that were deleted after the backup", "set", deletedCode},
	{"**Codes that were deleted after the backup", "walled", deletedBehindAWall},
	{"**Codes that were deleted after the backup", "allowed", deletedAllowed},
	{"**Codes that were deleted after the backup", "vendor's PIN", deletedOfVendors},
	{"**Codes that were deleted after the backup", "unmanaged", strangers},
	{"**Codes that were deleted after the backup", "ended", ended},
	{"Locks that were given up since", "left alone", leftAlone},
	{"**Codes whose PIN or time frame was changed", "PIN", changedPIN},
	{"**Codes whose PIN or time frame was changed", "time frame", changedTime},
	{"**Codes whose PIN or time frame was changed", "stands", changedAllowed},
	{"**Codes whose PIN or time frame was changed", "hidden", changedHidden},
	{"**Codes whose PIN or time frame was changed", "taken", takenPIN},
	{"**People at access systems are as they were", "people", people},
	{"User identities that were deleted", "erased", identity},
	{"API keys that were revoked", "keys", keys},
	{"API keys that were revoked", "sessions", sessions},
	{"API keys that were revoked", "pages", pages},
	{"Accounts that were disconnected", "disconnected", disconnected},
	{"Accounts that were disconnected", "credential", credential},
	{"Webhooks that were deleted", "deleted", deletedHook},
	{"**Webhook secrets that were rotated", "rotated", rotated},
	{"Requests that are sent again", "repeated", repeated},
	{"Deliveries that were due", "due", due},
	{"What was under way", "codes", underWay},
	{"What was under way", "doors", bolts}, // last before the backup, since a command waits for half a minute only
}

// elsewhere maps lines of the guide to the files that test them.
var elsewhere = map[string]string{
	"The master key is that of the backup":             "restore_test.go",
	"Terraform's state may contain resources that the": "../../../provider/backup_restore_test.go",
}

// A restore has the effects that the guide lists, at locks and access systems, in the API, and for webhooks. Each line
// of the guide has a story here.
func TestRestore_BringsBack(t *testing.T) {
	t.Parallel()
	s := &scene{
		program: newPrivate(t),
		outside: newOutside(t),
		server:  &ready{},
		changed: &[]string{},
		early:   &[]func(*scene){},
	}
	stop := s.begin()
	s.workspace = s.ok("workspaces", "create", "Home")
	s.key = s.ok("keys", "create", "--workspace", s.workspace)
	s.hook("/all")
	_, s.devices = s.account("doors", "august", "yale", "smartthings", "salto_ks", "igloohome", "kwikset")
	_, s.busy = s.account("busy", "august", "yale", "nuki", "tedee")

	since, then := make([]func(*scene), len(broughtBack)), make([]func(*scene), len(broughtBack))
	for i, b := range broughtBack {
		since[i], then[i] = b.begin(s)
	}
	file := filepath.Join(s.dir, "backup.tar.gz")
	made := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	s.ok("backup", file)
	for _, f := range since {
		f(s)
	}
	s.mark()
	audit := s.ok("audit", "--since", made, "--limit", "0")
	for _, id := range *s.changed {
		if !strings.Contains(audit, id) {
			t.Errorf("the log of the database that is replaced does not name %s", id)
		}
	}
	stop()

	s.env = append(s.env, "DEVICEACCESS_DATA_DIR="+s.restoredTo())
	s.ok("restore", file)
	s.earlier = s.got("/all", "")
	s.forget()
	closed := s.open()
	s.passes(1)
	for _, f := range *s.early {
		f(s)
	}
	closed()
	s.begin()
	s.marked()
	t.Run("guide", func(t *testing.T) {
		for i, b := range broughtBack {
			t.Run(strings.Trim(b.guide, "*")+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				then[i](s.on(t))
			})
		}
	})
	s.tellsNothingElse()
}

// Every line of the guide about what a restore brings back is tested, and every story is in the guide.
func TestRestore_GuideIsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../server/docs/backup-and-upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## What a restore brings back\n")
	section, _, _ = strings.Cut(section, "\n## ")
	bullets := regexp.MustCompile(`(?m)^\* (.*)$`).FindAllStringSubmatch(section, -1)
	if len(bullets) < 10 {
		t.Fatalf("only %d lines are found", len(bullets))
	}
	tried := map[string]bool{}
	for _, b := range bullets {
		found := false
		for _, l := range broughtBack {
			if strings.HasPrefix(b[1], l.guide) {
				found, tried[l.guide] = true, true
			}
		}
		for begin, file := range elsewhere {
			if _, err := os.Stat(file); err == nil && strings.HasPrefix(b[1], begin) {
				found = true
			}
		}
		if !found {
			t.Errorf("nothing tries %q", b[1])
		}
	}
	if len(tried)+len(elsewhere) != len(bullets) {
		t.Errorf("%d lines are tried, and there are %d", len(tried)+len(elsewhere), len(bullets))
	}
	for _, l := range broughtBack {
		if !tried[l.guide] {
			t.Errorf("the guide has no line that begins with %q", l.guide)
		}
	}
}
