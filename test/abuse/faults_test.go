package abuse_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/test/abuse"
)

func TestRowFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*abuse.Row)
		want  string
	}{
		"nothing":      {func(*abuse.Row) {}, ""},
		"not compared": {func(r *abuse.Row) { r.Calm = abuse.Figures{} }, ""},
		"memory":       {func(r *abuse.Row) { r.Peak = 257 }, "257 MiB"},
		"a request failed": {
			func(r *abuse.Row) { r.Under.Failed, r.Under.Failures = 1, []string{"x is answered 503"} },
			"x is answered 503",
		},
		"no request succeeded": {func(r *abuse.Row) { r.Under.OK = 0 }, "no healthy request"},
		"the lock was starved": {func(r *abuse.Row) { r.Worked = 0 }, "no code"},
		"three times as slow": {
			func(r *abuse.Row) { r.Under.P50 = 6 * time.Millisecond },
			"half of the healthy requests",
		},
		"codes are late":         {func(r *abuse.Row) { r.Under.Code = 2 * time.Second }, "half of the healthy codes"},
		"no code in the calm":    {func(r *abuse.Row) { r.Calm.Code = 0 }, "half of the healthy codes"},
		"headers go on":          {func(r *abuse.Row) { r.Slow = 900 }, "on 900 connections"},
		"too many workspaces":    {func(r *abuse.Row) { r.Workspaces, r.MayMake = 22, 21 }, "22 workspaces"},
		"as many as it may":      {func(r *abuse.Row) { r.Workspaces, r.MayMake = 21, 21 }, ""},
		"webviews of a session":  {func(r *abuse.Row) { r.Stored.Webviews = 21 }, "21 unused webviews"},
		"metadata of a visitor":  {func(r *abuse.Row) { r.Stored.Bytes = 26_000 }, "26000 bytes"},
		"answers to visitors":    {func(r *abuse.Row) { r.Stored.Keys = 10_001 }, "10001 answers"},
		"long answer":            {func(r *abuse.Row) { r.Stored.Answer = 156_000 }, "156000 bytes"},
		"entries of visitors":    {func(r *abuse.Row) { r.Stored.Entries = 1001 }, "1001 audit entries"},
		"as much as may be kept": {func(r *abuse.Row) { r.Stored = abuse.Stored{20, 600, 10_000, 8000, 1000} }, ""},
		"hardly an attack":       {func(r *abuse.Row) { r.Made = 800 }, "made 800 connections"},
		"no room to attack":      {func(r *abuse.Row) { r.Made, r.Room = 0, 900 }, ""}, // the machine's limit
	} {
		r := abuse.Row{
			Name:   name,
			Peak:   200,
			Worked: 3,
			Reach: abuse.Reach{
				Connections: 500,
				Made:        1000,
				Wanted:      1000,
				Room:        19_000,
			},
			Calm:  abuse.Figures{OK: 50, P50: 2 * time.Millisecond, Code: 150 * time.Millisecond},
			Under: abuse.Figures{OK: 50, P50: 4 * time.Millisecond, Code: 300 * time.Millisecond},
		}
		c.spoil(&r)
		faults := r.Faults()
		if c.want == "" && len(faults) > 0 ||
			c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)) {
			t.Errorf("%s: %q, want %q", name, faults, c.want)
		}
		if r.Confined() != (name == "no room to attack") {
			t.Errorf("%s: room: %t", name, !r.Confined())
		}
	}
}
