package abuse

import (
	"fmt"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/auth"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
)

// Limits of how much longer healthy requests and codes may take during an attack than in the calm before it, at their
// median. The aim for requests is a factor of two; machines differ by a quarter.
const (
	maxSlowdown     = 2.5
	maxCodeSlowdown = 10
)

// maxPublicAnswer is the maximum size of a stored answer to a visitor with a publishable key: a webview with two
// redirect URLs of 2048 characters, its metadata, and the vendors, or a client session.
const maxPublicAnswer = 8 << 10

// Faults returns the limits that the server has violated, and whether the attack was weaker than intended. Durations
// count only if there is a calm to compare with, except for requests that failed because of them.
func (r Row) Faults() (faults []string) {
	fault := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Sprintf("%s: "+format, append([]any{r.Name}, args...)...))
		}
	}
	fault(r.Peak > MaxMemory, "the server held %.0f MiB, more than %d", r.Peak, MaxMemory)
	fault(
		r.Under.Failed > 0,
		"%d healthy requests have failed: %s",
		r.Under.Failed,
		strings.Join(r.Under.Failures, "; "),
	)
	fault(r.Under.OK == 0, "no healthy request was answered")
	fault(r.Worked == 0, "no code was set on the healthy lock and reported")
	fault(
		r.Calm.OK > 0 && r.Slow > r.Wanted/10,
		"on %d connections of %d a header was still being sent after %s",
		r.Slow,
		r.Wanted,
		headerEnds,
	)
	fault(r.Workspaces > r.MayMake, "one token has created %d workspaces, and %d are allowed", r.Workspaces, r.MayMake)
	fault(
		r.Stored.Webviews > auth.MaxSessionWebviews,
		"a client session has %d unused webviews, and %d are allowed",
		r.Stored.Webviews,
		auth.MaxSessionWebviews,
	)
	fault(
		r.Stored.Bytes > 2*domain.MaxSessionMetadata, // jsonb takes more than JSON
		"a client session has stored %d bytes of metadata with a webview",
		r.Stored.Bytes,
	)
	fault(r.Stored.Keys > idempotency.PublicKeys, "%d answers to visitors are stored", r.Stored.Keys)
	fault(r.Stored.Answer > maxPublicAnswer, "an answer to a visitor takes %d bytes", r.Stored.Answer)
	fault(r.Stored.Entries > audit.PublicEntries, "visitors have caused %d audit entries", r.Stored.Entries)
	fault(!r.Confined() && 10*r.Made < 9*r.Wanted, "the attackers made %d connections, of %d", r.Made, r.Wanted)
	return append(faults, r.delays()...)
}

// delays returns the faults of duration.
func (r Row) delays() (faults []string) {
	if r.Calm.OK == 0 {
		return nil
	}
	slower := func(what string, calm, under time.Duration, most float64) {
		if calm == 0 || ratio(under, calm) > most {
			faults = append(
				faults,
				fmt.Sprintf(
					"%s: half of the healthy %s took %s, and %s in the calm before: more than %g times as long",
					r.Name,
					what,
					under,
					calm,
					most,
				),
			)
		}
	}
	slower("requests", r.Calm.P50, r.Under.P50, maxSlowdown)
	slower("codes", r.Calm.Code, r.Under.Code, maxCodeSlowdown)
	return faults
}

// Confined reports whether the limit of open files is too low for the attack.
func (r Row) Confined() bool { return r.Room < r.Wanted }
