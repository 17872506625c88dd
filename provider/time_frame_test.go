package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const (
	opensForEver = "Warning: The time frame will be removed"
	isOver       = "Warning: The time frame is over"
)

const began = "2026-01-01T10:00:00Z"

func opensUntil(ends string) string {
	return fmt.Sprintf("\n  starts_at = %q\n  ends_at = %q", began, ends)
}

// What is imported has the time frame that it had, also where the configuration says nothing of one.
func TestPlanWarnsOfATimeFrameThatItTakesAway(t *testing.T) {
	t.Parallel()
	const ends = "2999-05-31T10:00:00Z"
	for name, managed := range map[string]bool{"managed": true, "unmanaged": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			id := f.unmanaged(fakeCode{
				name:     "Tenant",
				code:     longPIN,
				startsAt: began,
				endsAt:   ends,
				managed:  managed,
			})
			of := f.unmanaged(fakeCode{
				name:     "Nanny",
				code:     longPIN,
				startsAt: began,
				endsAt:   ends,
				managed:  managed,
			})
			f.codes[of].device = lockB
			w := newDirectory(t, map[string]string{"main.tf": required + f.config(accessCode("")+codeSet("", lockB))})
			w.expect(true, "import", front, lockA+"/"+id)
			w.expect(true, "import", nanny, lockB+"/"+of)
			said := w.plain("plan")
			expectSaid(
				t,
				"without a time frame",
				said,
				opensForEver,
				"open always, without an end",
				"write its time frame into the configuration",
				ends,
			)
			if n := strings.Count(w.read("plan"), opensForEver); n != 2 {
				t.Errorf("%d warnings", n)
			}
			w.rewrite(required + f.config(accessCode(opensUntil(ends))+codeSet(opensUntil(ends), lockB)))
			if said := w.plain("plan"); strings.Contains(said, opensForEver) {
				t.Errorf("a time frame that stays is warned of: %s", said)
			}
		})
	}
}

func TestPlanWarnsOfACreationWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	ended := opensUntil(time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	later := opensUntil("2999-05-31T10:00:00Z")
	pin := "code = \"" + longPIN + "\""
	config := func(frame string) string { return required + f.config(accessCode(frame)+codeSet(pin+frame, lockB)) }
	warned := func(t *testing.T, when string, w *directory, want int) {
		t.Helper()
		said := w.read("plan")
		if n := strings.Count(said, isOver); n != want {
			t.Errorf("%s: %d warnings, want %d", when, n, want)
		}
	}
	w := newDirectory(t, map[string]string{"main.tf": config(ended)})
	expectSaid(
		t,
		"a creation",
		w.plain("plan"),
		isOver,
		"ends_at",
		"Servers do not create a code whose time frame is over",
		"Remove the code from the configuration, or move its time frame",
	)
	warned(t, "a creation", w, 2)
	w.rewrite(config(later))
	warned(t, "a creation of the future", w, 0)
	w.expect(true, "apply", "-auto-approve")

	end := func(c *fakeCode) { c.endsAt = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339) }
	f.do(func() {
		for _, c := range f.codes {
			end(c)
		}
	})
	w.rewrite(config(ended))
	w.expect(true, "apply", "-refresh-only", "-auto-approve")
	warned(t, "what is there until the server deletes it", w, 0)
	w.rewrite(required + f.config(strings.Replace(accessCode(ended), lockA, lockC, 1)+codeSet(pin+ended, lockB, lockC)))
	warned(t, "a replacement, and a lock that is added", w, 2)
	f.do(func() {
		for _, c := range f.codes {
			c.status = "removing"
		}
	})
	w.rewrite(config(ended))
	warned(t, "what is being deleted", w, 2)
	f.do(func() { clear(f.codes) })
	warned(t, "what was deleted", w, 2)
}

// Servers keep times in microseconds.
func TestServerTimeFrameFinerThanAMicrosecondConverges(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	const finer = "starts_at = \"2035-06-08T10:00:00.000000999Z\"\n  ends_at = \"2035-06-08T11:00:00.000000001Z\"\n"
	config := onServer(srv, accessCodeOn(srv.Device(t, "august"), finer)+codeSet(finer, srv.Device(t, "yale")))
	drive(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{Config: config, ConfigPlanChecks: plansNothing()},
	}})
}
