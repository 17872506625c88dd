package console

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

func (h *handler) activityRoutes() []route {
	return []route{
		page("/activity", h.listActivity),
		page("/activity/export", h.exportActivity),
	}
}

// activityKinds are the options of the filter by kind.
var activityKinds = []option{
	{"", "Changes and events"},
	{overview.AuditRow, "Changes"},
	{overview.EventRow, "Events"},
}

// momentLayout is the format of datetime-local inputs, in UTC.
const momentLayout = "2006-01-02T15:04"

// parseMoment reads a time of a filter; zero: there is none.
func parseMoment(text string) time.Time {
	for _, layout := range []string{momentLayout, momentLayout + ":05", time.RFC3339Nano} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	return time.Time{}
}

// momentText is a time of a filter for people.
func momentText(text string) string { return parseMoment(text).Format("2006-01-02 15:04") }

// period reads the filter by time from the URL.
func (rq *request) period() (since, until time.Time) {
	return parseMoment(rq.query("since")), parseMoment(rq.query("until"))
}

// periodOr is period as texts of its fields. The default end is now, and the default length of the period is length.
func (rq *request) periodOr(length time.Duration) (since, until string) {
	since, until = rq.query("since"), rq.query("until")
	if parseMoment(until).IsZero() {
		// The fields have minutes, and the end is exclusive.
		until = rq.now.Add(time.Minute).UTC().Format(momentLayout)
	}
	if parseMoment(since).IsZero() {
		since = parseMoment(until).Add(-length).Format(momentLayout)
	}
	return since, until
}

// activityFilter reads the filters of the activity from the URL. known is false if an identifier is none, so that no
// row matches.
func (rq *request) activityFilter() (f overview.ActivityFilter, known bool) {
	f = overview.ActivityFilter{Kind: rq.query("kind"), Actor: rq.query("actor"), What: rq.query("what")}
	f.Installation = rq.session.Operator.RoleIn(uuid.Nil).Includes(domain.RoleAdmin)
	f.Since, f.Until = rq.period()
	for name, to := range map[string]*uuid.UUID{"subject": &f.Subject, "request": &f.RequestID} {
		text := rq.query(name)
		if text == "" {
			continue
		}
		id, err := uuid.Parse(text)
		if err != nil {
			return f, false
		}
		*to = id
	}
	return f, true
}

func (h *handler) listActivity(rq *request) error {
	var rows []overview.ActivityRow
	var next overview.Position
	f, known := rq.activityFilter()
	if known {
		var err error
		rows, next, err = h.Access.Overview.Activity(
			rq.r.Context(),
			rq.workspace.ID,
			f,
			overview.ParsePosition(rq.query(afterParam)),
			pageRows,
		)
		if err != nil {
			return err
		}
	}
	var subjects []overview.Subject
	for _, r := range rows {
		subjects = append(subjects, r.Subjects...)
	}
	names, err := h.Access.Overview.Names(rq.r.Context(), rq.workspace.ID, subjects)
	if err != nil {
		return err
	}
	return rq.show(activityPage(rq, rows, names, next.String()))
}

// actorKinds are the kinds of actors in words.
var actorKinds = map[string]string{
	string(domain.APIKey):         "API key",
	string(domain.PAT):            "Personal token",
	string(domain.ConsoleSession): "Session token",
	string(domain.PublishableKey): "Publishable key",
	string(domain.EndUser):        "Client session",
	"operator":                    "Operator",
	audit.ByPage:                  "Connect page",
	audit.ByCommandLine:           "Command by",
}

// actorText says who acted.
func actorText(r overview.ActivityRow) string {
	kind, ok := actorKinds[r.ActorKind]
	if !ok {
		kind = r.ActorKind
	}
	switch {
	case r.Kind == overview.EventRow:
		return "Server"
	case r.ActorName != "" && r.ActorKind == "operator":
		return r.ActorName
	case r.ActorName != "":
		return kind + " " + r.ActorName
	case r.ActorID != nil:
		return kind + " " + short(r.ActorID.String())
	}
	return kind
}

// actorFilter is the value of the filter that finds the acts of the same actor.
func actorFilter(r overview.ActivityRow) string {
	if r.ActorID != nil {
		return r.ActorID.String()
	}
	return r.ActorName
}

// pastVerbs are the last parts of operations in words.
var pastVerbs = map[string]string{
	"create":        "Created",
	"update":        "Changed",
	"delete":        "Deleted",
	"sync":          "Read again:",
	"lock_door":     "Locked the door:",
	"unlock_door":   "Unlocked the door:",
	"connect":       "Connected",
	"rotate_secret": "Rotated the secret of",
	"send_test":     "Sent a test to",
	"enable":        "Enabled",
	"disable":       "Disabled",
	"replay":        "Replayed deliveries of",
	"suspend":       "Suspended",
	"unsuspend":     "Unsuspended",
	"revoke":        "Revoked",
}

// actText describes an operation: a path of the API, or the words of a command.
func actText(operation string) string {
	parts := strings.FieldsFunc(operation, func(r rune) bool { return r == '/' || r == ' ' })
	if len(parts) > 1 && parts[0] == "deviceaccess" {
		parts = parts[1:]
	}
	if len(parts) < 2 {
		return operation
	}
	words := func(list ...string) string {
		text := strings.NewReplacer("_", " ", "-", " ").Replace(strings.Join(list, " "))
		return strings.Replace(text, "acs ", "access system ", 1)
	}
	if verb, ok := pastVerbs[parts[1]]; ok {
		return strings.TrimSpace(verb + " " + strings.TrimSuffix(words(parts[0]), "s") + " " + words(parts[2:]...))
	}
	last := len(parts) - 1
	if verb, ok := pastVerbs[parts[last]]; ok {
		return verb + " " + strings.TrimSuffix(words(parts[:last]...), "s")
	}
	return capitalized(words(parts[:last]...)) + ": " + words(parts[last])
}

// eventText describes an event type.
func eventText(eventType string) string {
	text := strings.NewReplacer("_", " ", ".", " ").Replace(eventType)
	return capitalized(strings.Replace(text, "acs ", "access system ", 1))
}

func capitalized(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// whatText describes a row.
func whatText(r overview.ActivityRow) string {
	if r.Kind == overview.EventRow {
		return eventText(r.What)
	}
	return actText(r.What)
}

// subjectPages are the paths of the pages of subjects, by the name of their identifier.
var subjectPages = map[string]string{
	"connect_webview_id":   "/accounts/links/",
	"device_id":            "/locks/",
	"access_code_id":       "/codes/",
	"connected_account_id": "/accounts/",
	"webhook_id":           "/webhooks/",
	"acs_user_id":          "/people/users/",
}

// subjectText names the kind of a subject.
func subjectText(kind string) string {
	text := strings.ReplaceAll(strings.TrimSuffix(kind, "_id"), "_", " ")
	return strings.Replace(text, "acs ", "access system ", 1)
}

// subjectsShown is how many subjects a row shows.
const subjectsShown = 3

// mainSubjects returns subjects with codes first. Accounts of devices that are among them, and action attempts besides
// others, say nothing new.
func mainSubjects(all []overview.Subject) (out []overview.Subject) {
	rank := func(s overview.Subject) int {
		switch s.Kind {
		case "access_code_id":
			return 0
		case "device_id":
			return 1
		case "connected_account_id", "action_attempt_id":
			return 3
		}
		return 2
	}
	out = slices.Clone(all)
	slices.SortStableFunc(out, func(a, b overview.Subject) int { return rank(a) - rank(b) })
	if len(out) > 0 && rank(out[0]) < 2 {
		out = slices.DeleteFunc(out, func(s overview.Subject) bool { return rank(s) == 3 })
	}
	return out
}

// Limits of an export. A page without matches counts as well, so that a rare match does not read everything.
const (
	exportPages = 200
	exportPage  = 500 // rows
	// exportPeriod is how far back an export goes unless the operator chooses a period.
	exportPeriod = 30 * day
)

// limitRow is the kind of the last row of an export that has reached its limit.
const limitRow = "limit"

// limitReached returns the last row of an export whose rest starts at a position. The rest can repeat rows of the same
// time, but lacks none.
func limitReached(rest overview.Position) []overview.ActivityRow {
	return []overview.ActivityRow{
		{
			Kind: limitRow,
			At:   rest.At.Add(time.Microsecond),
			What: "The export ends here at its limit of 100,000 rows, or of those that it searches. " +
				"For the rest, export until this time.",
		},
	}
}

// exportActivity streams the rows that match the filters as CSV or as JSON lines. Rows contain no values of
// resources, so no PIN.
func (h *handler) exportActivity(rq *request) error {
	f, known := rq.activityFilter()
	since, until := rq.periodOr(exportPeriod)
	f.Since, f.Until = parseMoment(since), parseMoment(until)
	write, contentType, ending := writeJSONLines(rq.w), "application/x-ndjson", "ndjson"
	if rq.query("format") != "ndjson" {
		write, contentType, ending = writeCSV(rq.w), "text/csv; charset=utf-8", "csv"
	}
	rq.w.Header().Set("Content-Type", contentType)
	name := "activity-" + rq.now.UTC().Format("20060102-150405") + "." + ending
	rq.w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	if rq.r.Method == http.MethodHead {
		return nil
	}
	ctx := rq.r.Context()
	var rows []overview.ActivityRow
	var next overview.Position
	if known {
		var err error
		if rows, next, err = h.Access.Overview.Activity(ctx, rq.workspace.ID, f, next, exportPage); err != nil {
			rq.w.Header().Del("Content-Disposition")
			return err
		}
	}
	admission.Release(ctx) // it waits for the client
	if err := h.streamActivity(rq, f, rows, next, write); err != nil && ctx.Err() == nil {
		if !errors.Is(err, errDisconnected) {
			h.Log.ErrorContext(ctx, "an export of the activity failed", "request_id", rq.id.String(), "error", err)
		}
		panic(http.ErrAbortHandler) // the client must not take what it has for everything
	}
	return nil
}

// errDisconnected means that the client is gone.
var errDisconnected = errors.New("the client has disconnected")

// streamActivity writes pages of rows, starting with the given one. Where it reaches the limit, the last row says so.
func (h *handler) streamActivity(
	rq *request,
	f overview.ActivityFilter,
	rows []overview.ActivityRow,
	next overview.Position,
	write func([]overview.ActivityRow) error,
) error {
	ctx := rq.r.Context()
	for page := 1; ; page++ {
		if next != (overview.Position{}) && page == exportPages {
			rows = append(rows, limitReached(next)...)
		}
		if err := write(rows); err != nil {
			return fmt.Errorf("%w: %w", errDisconnected, err)
		}
		if next == (overview.Position{}) || page == exportPages {
			return nil
		}
		err := admission.Reacquire(ctx, func() (err error) {
			rows, next, err = h.nextActivity(ctx, rq.workspace.ID, f, next)
			return err
		})
		if err != nil {
			return err
		}
	}
}

func (h *handler) nextActivity(
	ctx context.Context,
	workspace uuid.UUID,
	f overview.ActivityFilter,
	from overview.Position,
) ([]overview.ActivityRow, overview.Position, error) {
	return h.Access.Overview.Activity(ctx, workspace, f, from, exportPage)
}

// exportedRow is a row of an export.
type exportedRow struct {
	At        time.Time  `json:"at"`
	Kind      string     `json:"kind"`
	ID        uuid.UUID  `json:"id"`
	ActorKind string     `json:"actor_kind,omitempty"`
	ActorID   *uuid.UUID `json:"actor_id,omitempty"`
	ActorName string     `json:"actor_name,omitempty"`
	// What is an operation or an event type.
	What      string              `json:"what"`
	Outcome   string              `json:"outcome,omitempty"`
	RequestID *uuid.UUID          `json:"request_id,omitempty"`
	Subjects  map[string][]string `json:"subjects"`
}

// outcomeText is the outcome of an act; empty for other rows.
func outcomeText(r overview.ActivityRow) string {
	switch {
	case r.Kind != overview.AuditRow:
		return ""
	case r.Pending:
		return "pending"
	}
	return "done"
}

// writeJSONLines returns a function that writes rows, one JSON object a line.
func writeJSONLines(w io.Writer) func([]overview.ActivityRow) error {
	lines := json.NewEncoder(w)
	return func(rows []overview.ActivityRow) error {
		for _, r := range rows {
			out := exportedRow{
				At:        r.At.UTC(),
				Kind:      r.Kind,
				ID:        r.ID,
				ActorKind: r.ActorKind,
				ActorID:   r.ActorID,
				ActorName: r.ActorName,
				What:      r.What,
				Outcome:   outcomeText(r),
				RequestID: r.RequestID,
				Subjects:  map[string][]string{},
			}
			for _, s := range r.Subjects {
				out.Subjects[s.Kind] = append(out.Subjects[s.Kind], s.ID.String())
			}
			if err := lines.Encode(out); err != nil {
				return err
			}
		}
		return nil
	}
}

// exportColumns are the columns of the CSV.
var exportColumns = []string{
	"at", "kind", "id", "actor_kind", "actor_id", "actor_name", "what", "outcome", "request_id", "subjects",
}

// writeCSV returns a function that writes rows, and the names of the columns before the first ones.
func writeCSV(w io.Writer) func([]overview.ActivityRow) error {
	table, headed := csv.NewWriter(w), false
	return func(rows []overview.ActivityRow) error {
		if !headed {
			headed = true
			if err := table.Write(exportColumns); err != nil {
				return err
			}
		}
		for _, r := range rows {
			subjects := make([]string, len(r.Subjects))
			for i, s := range r.Subjects {
				subjects[i] = s.Kind + "=" + s.ID.String()
			}
			cells := []string{
				r.At.UTC().Format(time.RFC3339Nano), r.Kind, r.ID.String(), r.ActorKind, idText(r.ActorID), r.ActorName,
				r.What, outcomeText(r), idText(r.RequestID), strings.Join(subjects, " "),
			}
			for i, cell := range cells {
				cells[i] = safeCell(cell)
			}
			if err := table.Write(cells); err != nil {
				return err
			}
		}
		table.Flush()
		return table.Error()
	}
}

// safeCell returns a cell that spreadsheets do not take for a formula (OWASP, CSV injection).
func safeCell(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

// idText is an identifier; empty: there is none.
func idText(id *uuid.UUID) string {
	if id == nil {
		return ""
	}
	return id.String()
}

// exportURL returns the URL of the export of the rows that the page shows.
func (rq *request) exportURL(format string) string {
	since, until := rq.periodOr(exportPeriod)
	query := []string{"format", format, "since", since, "until", until}
	for _, name := range []string{"kind", "actor", "what", "subject", "request"} {
		query = append(query, name, rq.query(name))
	}
	return rq.url("/activity/export", query...)
}
