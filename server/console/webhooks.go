package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

func (h *handler) webhookRoutes() []route {
	const one = "/webhooks/{webhook}"
	return []route{
		page("/webhooks", h.listWebhooks),
		adminForm("/webhooks/new", h.showNewWebhook),
		action(domain.RoleAdmin, "/webhooks", "/webhooks/create", h.createWebhook),
		page(one, h.showWebhook),
		adminForm(one+"/types", h.showTypes),
		action(domain.RoleAdmin, one+"/types", "/webhooks/update", h.changeTypes),
		action(domain.RoleAdmin, one+"/test", "/deviceaccess/webhooks/send_test", h.testWebhook),
		action(domain.RoleAdmin, one+"/enable", "webhooks enable", h.enableWebhook),
		action(domain.RoleAdmin, one+"/disable", "webhooks disable", h.disableWebhook),
		action(domain.RoleAdmin, one+"/rotate", "/deviceaccess/webhooks/rotate_secret", h.rotateSecret),
		action(domain.RoleAdmin, one+"/delete", "/webhooks/delete", h.deleteWebhook),
		adminForm(one+"/replay", h.showReplay),
		action(domain.RoleAdmin, one+"/replay", "webhooks replay", h.replayDeliveries),
		page(one+"/deliveries/{event}", h.showDelivery),
		action(domain.RoleAdmin, one+"/deliveries/{event}/send", "webhooks replay", h.sendAgain),
	}
}

// webhookNotices are the notices of actions on webhooks.
var webhookNotices = map[string]string{
	"webhook-types":         "Saved. The next events are sent by these types.",
	"webhook-enabled":       "Enabled. New events are sent. Held ones stay held until you replay them.",
	"webhook-disabled":      "Disabled. Events are held until you enable the webhook and replay them.",
	"webhook-deleted":       "Deleted, with its deliveries.",
	"webhook-replayed":      "Scheduled. The server sends these deliveries now, oldest first.",
	"webhook-replayed-part": "Scheduled. The server sends the oldest deliveries now. This page has the rest.",
	"delivery-sent":         "Scheduled. The server sends the event again now.",
}

// webhookRow is a webhook in the list and on its page.
type webhookRow struct {
	overview.Webhook
	overview.Traffic
}

// address is the URL without its query, which can contain a token.
func (w webhookRow) address() string { return withoutQuery(w.URL) }

// withoutQuery returns a URL without its query.
func withoutQuery(address string) string {
	plain, _, found := strings.Cut(address, "?")
	if found {
		plain += "?…"
	}
	return plain
}

// types describes the event types of a webhook.
func (w webhookRow) types() string {
	switch {
	case slices.Contains(w.EventTypes, "*"):
		return "all events"
	case len(w.EventTypes) == 1:
		return w.EventTypes[0]
	}
	return fmt.Sprintf("%d types", len(w.EventTypes))
}

// state is the state of a webhook in words.
func (w webhookRow) state(now time.Time) (tone, string) {
	switch {
	case !w.DisabledAt.IsZero():
		return bad, "Disabled"
	case !w.FailingSince.IsZero() && w.PausedUntil.After(now):
		return warning, "Failing, paused"
	case !w.FailingSince.IsZero():
		return warning, "Failing"
	case w.LastSuccess.IsZero():
		return idle, "Nothing sent yet"
	case !w.Healthy:
		return news, "Slow"
	}
	return good, "Working"
}

// waiting describes the deliveries that wait.
func (w webhookRow) waiting() string {
	switch {
	case w.Pending > 0 && w.Held > 0:
		return countedText(w.Pending) + " waiting, " + countedText(w.Held) + " held"
	case w.Held > 0:
		return countedText(w.Held) + " held"
	case w.Pending > 0:
		return countedText(w.Pending) + " waiting"
	}
	return "none"
}

// webhookStates are the options of the filter by state.
var webhookStates = []option{{"", "All"}, {"working", "Working"}, {"failing", "Failing"}, {"disabled", "Disabled"}}

// typeOptions are the options of a filter by event type.
func typeOptions() []option {
	out := []option{{"", "All"}}
	for _, t := range event.Types() {
		out = append(out, option{t, t})
	}
	return out
}

func (h *handler) listWebhooks(rq *request) error {
	list, next, err := h.Access.Overview.Webhooks(
		rq.r.Context(),
		rq.workspace.ID,
		overview.WebhookFilter{State: rq.query("state"), EventType: rq.query("type"), Search: rq.query("q")},
		overview.ParsePosition(rq.query(afterParam)),
		pageRows,
	)
	if err != nil {
		return err
	}
	rows, err := h.addTraffic(rq, list)
	if err != nil {
		return err
	}
	return rq.show(webhooksPage(rq, rows, next.String()))
}

// addTraffic reads what the deliveries of webhooks show.
func (h *handler) addTraffic(rq *request, list []overview.Webhook) ([]webhookRow, error) {
	ids := make([]uuid.UUID, len(list))
	for i, w := range list {
		ids[i] = w.ID
	}
	if len(ids) == 0 {
		return nil, nil
	}
	traffic, err := h.Access.Overview.Traffic(rq.r.Context(), rq.workspace.ID, ids)
	if err != nil {
		return nil, err
	}
	rows := make([]webhookRow, len(list))
	for i, w := range list {
		rows[i] = webhookRow{w, traffic[w.ID]}
	}
	return rows, nil
}

// errNoWebhook is the error for an unknown webhook.
var errNoWebhook = &domain.Error{
	Kind:    domain.NotFound,
	Type:    "webhook_not_found",
	Message: "There is no such webhook. It may have been deleted.",
}

// webhookID returns the identifier in the path.
func (rq *request) webhookID() (uuid.UUID, error) {
	id, err := uuid.Parse(rq.param("webhook"))
	if err != nil {
		return id, errNoWebhook
	}
	return id, nil
}

// readWebhook reads the webhook in the path.
func (h *handler) readWebhook(rq *request) (w webhookRow, err error) {
	id, err := rq.webhookID()
	if err != nil {
		return w, err
	}
	list, _, err := h.Access.Overview.Webhooks(
		rq.r.Context(),
		rq.workspace.ID,
		overview.WebhookFilter{ID: id},
		overview.Position{},
		1,
	)
	if err != nil {
		return w, err
	}
	if len(list) == 0 {
		return w, errNoWebhook
	}
	rows, err := h.addTraffic(rq, list)
	if err != nil {
		return w, err
	}
	return rows[0], nil
}

// webhookPath returns the URL of a page of a webhook.
func (rq *request) webhookPath(id uuid.UUID, rest string) string {
	return rq.url("/webhooks/" + id.String() + rest)
}

// deliveryStates are the options of the filter by state.
var deliveryStates = []option{
	{"", "All"},
	{string(webhook.DeliveryDelivered), "Delivered"},
	{string(webhook.DeliveryPending), "Waiting"},
	{string(webhook.DeliveryFailed), "Given up"},
	{string(webhook.DeliveryHeld), "Held"},
}

// statusOptions are the options of the filter by the HTTP status of the last attempt.
var statusOptions = []option{
	{"", "All"},
	{"2", "2xx"},
	{"3", "3xx"},
	{"4", "4xx"},
	{"5", "5xx"},
	{"none", "No response"},
}

// deliveryFilter reads the filters of deliveries from the URL.
func (rq *request) deliveryFilter() overview.DeliveryFilter {
	f := overview.DeliveryFilter{
		State:     webhook.DeliveryState(rq.query("state")),
		EventType: rq.query("type"),
		Status:    rq.query("status"),
	}
	f.Event, _ = uuid.Parse(rq.query("event"))
	f.Since, f.Until = rq.period()
	return f
}

func (h *handler) showWebhook(rq *request) error {
	w, err := h.readWebhook(rq)
	if err != nil {
		return err
	}
	before, _ := uuid.Parse(rq.query(afterParam))
	list, next, err := h.Access.Overview.Deliveries(
		rq.r.Context(),
		rq.workspace.ID,
		w.ID,
		rq.deliveryFilter(),
		before,
		pageRows,
	)
	if err != nil {
		return err
	}
	after := ""
	if next != uuid.Nil {
		after = next.String()
	}
	return rq.show(webhookPage(rq, w, list, after))
}

// deliveryState is the state of a delivery in words.
func deliveryState(d overview.Delivery) (tone, string) {
	switch {
	case d.State == webhook.DeliveryDelivered:
		return good, "Delivered"
	case d.State == webhook.DeliveryFailed:
		return bad, "Given up"
	case d.State == webhook.DeliveryHeld:
		return warning, "Held"
	case d.Attempts > 0:
		return warning, "Retrying"
	}
	return news, "Waiting"
}

// answerText describes the outcome of an attempt.
func answerText(status int, problem string) string {
	if status != 0 {
		return fmt.Sprintf("%d %s", status, http.StatusText(status))
	}
	return problem
}

// webhookForm is the form of a new webhook, or of the types of one.
type webhookForm struct {
	id      uuid.UUID // zero: a new one
	url     string
	all     bool
	types   []string
	failure *domain.Error
}

// typeGroup are the event types of a kind of resource.
type typeGroup struct {
	name  string
	types []string
}

// typeGroups returns the event types by resource.
func typeGroups() (groups []typeGroup) {
	for _, t := range event.Types() {
		name, _, _ := strings.Cut(t, ".")
		if name = strings.ReplaceAll(name, "_", " "); len(groups) == 0 || groups[len(groups)-1].name != name {
			groups = append(groups, typeGroup{name: name})
		}
		last := &groups[len(groups)-1]
		last.types = append(last.types, t)
	}
	return groups
}

// enteredTypes returns the chosen event types.
func (rq *request) enteredTypes() (f webhookForm) {
	f.url, f.all = rq.form("url"), rq.form("all") != ""
	f.types = rq.r.PostForm["type"]
	return f
}

// wanted returns the event types for the domain.
func (f webhookForm) wanted() []string {
	if f.all {
		return []string{"*"}
	}
	return append([]string{}, f.types...)
}

func (h *handler) showNewWebhook(rq *request) error {
	return rq.show(webhookFormPage(rq, webhookForm{all: true}))
}

func (h *handler) createWebhook(rq *request) error {
	f := rq.enteredTypes()
	w, err := h.Access.Webhooks.CreateWebhook(rq.r.Context(), rq.principal, f.url, f.wanted())
	if failure, ok := domain.AsError(err); ok && failure.Kind == domain.Invalid {
		f.failure = failure
		return rq.render(statusOf(failure.Kind), webhookFormPage(rq, f))
	}
	if err != nil {
		return err
	}
	return rq.show(webhookSecretPage(rq, w, "Webhook created", ""))
}

func (h *handler) showTypes(rq *request) error {
	w, err := h.readWebhook(rq)
	if err != nil {
		return err
	}
	return rq.show(webhookFormPage(rq, webhookForm{
		id:    w.ID,
		url:   w.address(),
		all:   slices.Contains(w.EventTypes, "*"),
		types: w.EventTypes,
	}))
}

func (h *handler) changeTypes(rq *request) error {
	w, err := h.readWebhook(rq)
	if err != nil {
		return err
	}
	f := rq.enteredTypes()
	f.id, f.url = w.ID, w.address()
	err = h.Access.Webhooks.UpdateWebhook(rq.r.Context(), rq.principal, w.ID.String(), f.wanted())
	if failure, ok := domain.AsError(err); ok && failure.Kind == domain.Invalid {
		f.failure = failure
		return rq.render(statusOf(failure.Kind), webhookFormPage(rq, f))
	}
	if err != nil {
		return err
	}
	return rq.done(rq.webhookPath(w.ID, ""), "webhook-types")
}

func (h *handler) testWebhook(rq *request) error {
	w, err := h.readWebhook(rq)
	if err != nil {
		return err
	}
	if h.Tester == nil {
		return errNoPage
	}
	admission.Release(rq.r.Context()) // it waits for the receiver
	got, err := h.Tester.TestWebhook(rq.r.Context(), rq.principal, w.ID.String())
	if err != nil {
		return err
	}
	return rq.show(testPage(rq, w, got))
}

func (h *handler) enableWebhook(rq *request) error {
	id, err := rq.webhookID()
	if err != nil {
		return err
	}
	if _, err := h.Access.Webhooks.EnableWebhook(rq.r.Context(), rq.principal, id); err != nil {
		return err
	}
	return rq.done(rq.webhookPath(id, ""), "webhook-enabled")
}

func (h *handler) disableWebhook(rq *request) error {
	id, err := rq.webhookID()
	if err != nil {
		return err
	}
	const reason = "An operator disabled it in the console."
	if _, err := h.Access.Webhooks.DisableWebhook(rq.r.Context(), rq.principal, id, reason); err != nil {
		return err
	}
	return rq.done(rq.webhookPath(id, ""), "webhook-disabled")
}

func (h *handler) rotateSecret(rq *request) error {
	overlap := webhook.DefaultOverlap
	if rq.form("now") != "" {
		overlap = 0
	}
	w, until, err := h.Access.Webhooks.RotateSecret(rq.r.Context(), rq.principal, rq.param("webhook"), overlap)
	if err != nil {
		return err
	}
	note := "The old secret is no longer used. Configure the receiver now."
	if until != nil {
		note = "Both secrets sign until " + absolute(*until, "") + ". Configure the receiver until then."
	}
	return rq.show(webhookSecretPage(rq, w, "New secret", note))
}

func (h *handler) deleteWebhook(rq *request) error {
	if err := h.Access.Webhooks.DeleteWebhook(rq.r.Context(), rq.principal, rq.param("webhook")); err != nil {
		return err
	}
	return rq.done(rq.url("/webhooks"), "webhook-deleted")
}

// replayForm is a replay: its filter, and what it would send.
type replayForm struct {
	webhook.ReplayCount
	total        int
	since, until string // as in the fields
}

// replayPeriod is how far back a replay goes unless the operator chooses a period.
const replayPeriod = 24 * time.Hour

// replayFilter returns the filter of a replay. Without a state it is for failed and held deliveries.
func replayFilter(state, eventType string, since, until time.Time) webhook.DeliveryFilter {
	f := webhook.DeliveryFilter{
		States: []webhook.DeliveryState{webhook.DeliveryFailed, webhook.DeliveryHeld},
		Since:  since,
		Until:  until,
	}
	if state != "" {
		f.States = []webhook.DeliveryState{webhook.DeliveryState(state)}
	}
	if eventType != "" {
		f.EventTypes = []string{eventType}
	}
	return f
}

// replayStates are the options of the states to replay.
var replayStates = []option{
	{"", "Given up and held"},
	{string(webhook.DeliveryFailed), "Given up"},
	{string(webhook.DeliveryHeld), "Held"},
	{string(webhook.DeliveryDelivered), "Delivered"},
}

// showReplay counts what a replay would send.
func (h *handler) showReplay(rq *request) error {
	w, err := h.readWebhook(rq)
	if err != nil {
		return err
	}
	var form replayForm
	form.since, form.until = rq.periodOr(replayPeriod)
	f := replayFilter(rq.query("state"), rq.query("type"), parseMoment(form.since), parseMoment(form.until))
	after, _ := uuid.Parse(rq.query(afterParam))
	form.ReplayCount, err = h.Access.Webhooks.CountReplay(rq.r.Context(), rq.reader(), w.ID, f, after)
	if err != nil {
		return err
	}
	for _, n := range form.ByState {
		form.total += n
	}
	return rq.show(replayPage(rq, w, form))
}

// replayDeliveries replays at most webhook.MaxReplay deliveries, and leads to the rest.
func (h *handler) replayDeliveries(rq *request) error {
	id, err := rq.webhookID()
	if err != nil {
		return err
	}
	f := replayFilter(rq.form("state"), rq.form("type"), parseMoment(rq.form("since")), parseMoment(rq.form("until")))
	if f.Since.IsZero() || f.Until.IsZero() {
		return domain.Invalidf("since", "Choose from when until when to send deliveries again.")
	}
	ctx := rq.r.Context()
	if rq.form("enable") != "" {
		if _, err := h.Access.Webhooks.EnableWebhook(ctx, rq.principal, id); err != nil {
			return err
		}
	}
	after, _ := uuid.Parse(rq.form(afterParam))
	r, err := h.Access.Webhooks.Replay(ctx, rq.principal, id, f, after)
	if err != nil {
		return err
	}
	if !r.More {
		return rq.done(rq.webhookPath(id, ""), "webhook-replayed")
	}
	query := []string{afterParam, r.Last.String()}
	for _, name := range []string{"state", "type", "since", "until"} {
		query = append(query, name, rq.form(name))
	}
	return rq.done(withQuery(rq.webhookPath(id, "/replay"), query...), "webhook-replayed-part")
}

// deliveryView is what the page of a delivery shows.
type deliveryView struct {
	webhook  webhookRow
	delivery overview.Delivery
	attempts []attemptView
	body     string // JSON without PINs
	hidden   bool   // whether the body contains hidden values
	curl     string
}

// attemptView is an attempt of a delivery.
type attemptView struct {
	at      time.Time
	latency time.Duration
	status  int
	problem string
	excerpt string
}

func (h *handler) showDelivery(rq *request) error {
	w, err := h.readWebhook(rq)
	if err != nil {
		return err
	}
	v := deliveryView{webhook: w}
	if v.delivery, err = h.readDelivery(rq, w.ID); err != nil {
		return err
	}
	e, err := h.Access.Events.GetHidden(rq.r.Context(), rq.reader(), v.delivery.EventID)
	if err != nil {
		return err
	}
	if v.attempts, err = h.readAttempts(rq, w.ID, e); err != nil {
		return err
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write the event: %w", err)
	}
	if body, err = withoutPINs(body); err != nil {
		return err
	}
	v.body, v.hidden = indented(body), bytes.Contains(body, []byte(`"`+event.Hidden+`"`))
	v.curl = curlOf(w.address(), e.ID, body)
	return rq.show(deliveryPage(rq, v))
}

// readDelivery reads the delivery of the event in the path.
func (h *handler) readDelivery(rq *request, id uuid.UUID) (d overview.Delivery, err error) {
	missing := &domain.Error{
		Kind:    domain.NotFound,
		Type:    "delivery_not_found",
		Message: "There is no such delivery. The server deletes deliveries after their retention period.",
	}
	eventID, err := uuid.Parse(rq.param("event"))
	if err != nil {
		return d, missing
	}
	list, _, err := h.Access.Overview.Deliveries(
		rq.r.Context(),
		rq.workspace.ID,
		id,
		overview.DeliveryFilter{Event: eventID},
		uuid.Nil,
		1,
	)
	if err != nil {
		return d, err
	}
	if len(list) == 0 {
		return d, missing
	}
	return list[0], nil
}

// readAttempts reads the attempts to deliver an event, oldest first.
func (h *handler) readAttempts(rq *request, id uuid.UUID, e event.Event) ([]attemptView, error) {
	ctx := rq.r.Context()
	list, err := h.Access.Webhooks.ListDeliveryAttempts(ctx, rq.reader(), id, e.ID)
	if err != nil {
		return nil, err
	}
	times, err := h.Access.Overview.AttemptTimes(ctx, rq.workspace.ID, id, e.ID)
	if err != nil {
		return nil, err
	}
	out := make([]attemptView, len(list))
	for i, a := range list {
		out[i] = attemptView{
			latency: a.Latency,
			status:  a.Status,
			problem: a.Error,
			excerpt: withoutTexts(a.Excerpt, e.PINs),
		}
		if i < len(times) {
			out[i].at = times[i]
		}
	}
	return out, nil
}

// shortest is the minimum length of a text that withoutTexts replaces. No PIN is shorter.
const shortest = 3

// withoutTexts replaces texts in s.
func withoutTexts(s string, texts []string) string {
	for _, t := range texts {
		if len(t) >= shortest {
			s = strings.ReplaceAll(s, t, "***")
		}
	}
	return s
}

// pinFields are names of fields that contain PINs in events and audit details.
var pinFields = map[string]bool{"code": true, "pin": true}

// withoutPINs replaces values of fields that contain PINs, at any depth, in case they are not stored encrypted.
func withoutPINs(document []byte) ([]byte, error) {
	var value any
	read := json.NewDecoder(bytes.NewReader(document))
	read.UseNumber()
	if err := read.Decode(&value); err != nil {
		return nil, fmt.Errorf("read a document: %w", err)
	}
	hidePINs(value)
	return domain.MustJSON(value), nil
}

func hidePINs(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, one := range v {
			if pinFields[name] && one != nil {
				v[name] = event.Hidden
				continue
			}
			hidePINs(one)
		}
	case []any:
		for _, one := range v {
			hidePINs(one)
		}
	}
}

func indented(document []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, document, "", "  ") != nil {
		return string(document)
	}
	return out.String()
}

// curlOf returns a command that sends a body to a receiver, without a signature.
func curlOf(address string, id uuid.UUID, body []byte) string {
	return "curl -X POST " + quoted(address) + " \\\n  -H 'Content-Type: application/json' \\\n  -H 'webhook-id: " +
		id.String() + "' \\\n  --data-raw " + quoted(string(body))
}

// quoted returns a text as one word of a POSIX shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func (h *handler) sendAgain(rq *request) error {
	id, err := rq.webhookID()
	if err != nil {
		return err
	}
	d, err := h.readDelivery(rq, id)
	if err != nil {
		return err
	}
	f := webhook.DeliveryFilter{
		EventID: &d.EventID,
		States: []webhook.DeliveryState{
			webhook.DeliveryPending, webhook.DeliveryDelivered, webhook.DeliveryFailed, webhook.DeliveryHeld,
		},
	}
	if _, err := h.Access.Webhooks.ReplayDeliveries(rq.r.Context(), rq.principal, id, f, uuid.Nil); err != nil {
		return err
	}
	return rq.done(rq.webhookPath(id, "/deliveries/"+d.EventID.String()), "delivery-sent")
}

// sparkline is a chart of a webhook's attempts in 24 hours: bars by hour, oldest on the left.
type sparkline struct {
	succeeded, failed string // paths of SVG
	label             string // for screen readers and on hover
}

// Sizes of a sparkline in its own units.
const (
	sparkWidth  = 96
	sparkHeight = 24
	sparkBar    = sparkWidth / overview.Hours
)

// newSparkline draws the attempts of a webhook. Bars are relative to the busiest hour.
func newSparkline(t overview.Traffic) (s sparkline) {
	most, ok, failed := 0, 0, 0
	for hour := range overview.Hours {
		most = max(most, t.Succeeded[hour]+t.Failed[hour])
		ok, failed = ok+t.Succeeded[hour], failed+t.Failed[hour]
	}
	s.label = fmt.Sprintf("Last 24 hours: %d successful and %d failed attempts", ok, failed)
	for hour := range overview.Hours {
		x := (overview.Hours - 1 - hour) * sparkBar
		good := barHeight(t.Succeeded[hour], most)
		s.succeeded += bar(x, sparkHeight-good, good)
		wrong := min(barHeight(t.Failed[hour], most), sparkHeight-good)
		s.failed += bar(x, sparkHeight-good-wrong, wrong)
	}
	return s
}

// barHeight returns the height of a bar. Small numbers stay visible.
func barHeight(n, most int) int {
	if n == 0 {
		return 0
	}
	return max(2, n*(sparkHeight-1)/cmp.Or(most, 1))
}

func bar(x, y, height int) string {
	if height <= 0 {
		return ""
	}
	return fmt.Sprintf("M%d %dh%dv%dh-%dz", x, y, sparkBar-1, height, sparkBar-1)
}

// latencyText is the duration of an attempt.
func latencyText(d time.Duration) string {
	if d < time.Millisecond {
		return "under 1 ms"
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

func webhookFormTitle(f webhookForm) string {
	if f.id == uuid.Nil {
		return "New webhook"
	}
	return "Event types"
}

// webhookFormTarget is where the form is sent.
func webhookFormTarget(rq *request, f webhookForm) string {
	if f.id == uuid.Nil {
		return rq.url("/webhooks")
	}
	return rq.webhookPath(f.id, "/types")
}

// webhookFormCancel is where the form leads without being sent.
func webhookFormCancel(rq *request, f webhookForm) string {
	if f.id == uuid.Nil {
		return rq.url("/webhooks")
	}
	return rq.webhookPath(f.id, "")
}
