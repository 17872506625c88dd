package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

// deliveryFlags returns the flags that select deliveries.
func deliveryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "event", Usage: "select deliveries of the event `ID`"},
		&cli.StringSliceFlag{Name: "type", Usage: "select events of `TYPE`, such as device.connected; repeatable"},
		&cli.StringSliceFlag{
			Name: "state",
			Usage: "select deliveries in `STATE`: pending, delivered, failed (all attempts failed), or held (the webhook is " +
				"disabled); repeatable",
		},
		&cli.StringFlag{
			Name:  "since",
			Usage: "select events from `TIME` on: a time such as 2026-01-02T15:04:05Z, or an age such as 90m, 12h, or 7d",
		},
		&cli.StringFlag{Name: "until", Usage: "select events before `TIME`, in the format of --since"},
	}
}

// onDeliveries opens the database and runs act on the selected webhooks and deliveries.
func onDeliveries(
	act func(context.Context, *cli.Command, *app.Admin, []webhook.Endpoint, webhook.DeliveryFilter) error,
) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		f, err := deliveryFilter(c, time.Now())
		if err != nil {
			return err
		}
		var wanted uuid.UUID
		if c.Args().Present() {
			if wanted, err = uuid.Parse(c.Args().First()); err != nil {
				return fmt.Errorf(
					"%q is not a webhook_id; `deviceaccess-server webhooks list` shows the ids",
					c.Args().First(),
				)
			}
		}
		return withAdmin(ctx, c, func(a *app.Admin) error {
			all, err := a.Access.Webhooks.ListEndpoints(ctx)
			if err != nil {
				return err
			}
			if !c.Args().Present() {
				return act(ctx, c, a, all, f)
			}
			for _, e := range all {
				if e.ID == wanted {
					return act(ctx, c, a, []webhook.Endpoint{e}, f)
				}
			}
			return notFoundf(
				"webhook %s does not exist; `deviceaccess-server webhooks list` shows the webhooks",
				wanted,
			)
		})
	}
}

func deliveryFilter(c *cli.Command, now time.Time) (f webhook.DeliveryFilter, err error) {
	if text := c.String("event"); text != "" {
		event, err := uuid.Parse(text)
		if err != nil {
			return f, usagef("--event: %q is not an event id", text)
		}
		f.EventID = &event
	}
	for _, t := range c.StringSlice("type") {
		if err := webhook.CheckEventType(t); err != nil || t == "*" {
			return f, usagef("--type: unknown event type %q", t)
		}
		f.EventTypes = append(f.EventTypes, t)
	}
	for _, s := range c.StringSlice("state") {
		if err := validateOneOf("pending", "delivered", "failed", "held")(s); err != nil {
			return f, usagef("--state: %w", err)
		}
		f.States = append(f.States, webhook.DeliveryState(s))
	}
	for name, at := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := c.String(name); text != "" {
			if *at, err = parseTime(text, now); err != nil {
				return f, usagef("--%s: %w", name, err)
			}
		}
	}
	return f, nil
}

// parseTime parses a time in RFC 3339 or an age relative to now.
func parseTime(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := parseDuration(text)
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf(
			"%q is neither a time such as 2026-01-02T15:04:05Z nor an age such as 90m, 12h, or 7d",
			text,
		)
	}
	return now.Add(-ago), nil
}

func listDeliveries(
	ctx context.Context,
	c *cli.Command,
	a *app.Admin,
	webhooks []webhook.Endpoint,
	f webhook.DeliveryFilter,
) error {
	records := []deliveryRecord{}
	for _, e := range webhooks {
		all, err := a.Access.Webhooks.ListDeliveries(ctx, principalOf(e), e.ID, f, c.Int("limit"))
		if err != nil {
			return err
		}
		for _, d := range all {
			r := deliveryRecord{
				WebhookID:  e.ID.String(),
				EventID:    d.EventID.String(),
				EventType:  d.EventType,
				OccurredAt: d.OccurredAt,
				State:      string(d.State),
				Attempts:   int64(d.Attempts),
				NextAt:     d.Next,
			}
			if f.EventID != nil {
				if r.Responses, err = attemptsOf(ctx, a, e, d.EventID); err != nil {
					return err
				}
			}
			records = append(records, r)
		}
	}
	if err := deliveryListing.print(c, records); err != nil || c.String("output") != outputTable {
		return err
	}
	for _, r := range records {
		if len(r.Responses) == 0 {
			continue
		}
		fmt.Printf("\nAttempts to deliver to %s:\n", r.WebhookID)
		if err := attemptListing.print(c, r.Responses); err != nil {
			return err
		}
	}
	return nil
}

// deliveryRecord is what JSON and YAML show of a delivery.
type deliveryRecord struct {
	WebhookID  string          `json:"webhook_id"`
	EventID    string          `json:"event_id"`
	EventType  string          `json:"event_type"`
	OccurredAt time.Time       `json:"occurred_at"`
	State      string          `json:"state"`
	Attempts   int64           `json:"attempts"`
	NextAt     *time.Time      `json:"next_at,omitempty"`
	Responses  []attemptRecord `json:"responses,omitempty"` // with --event
}

// attemptRecord is what JSON and YAML show of an attempt of a delivery.
type attemptRecord struct {
	Number    int     `json:"number"`
	Status    int     `json:"status,omitempty"` // of the response; 0 without one
	LatencyMs float64 `json:"latency_ms"`
	Problem   string  `json:"problem,omitempty"`
	Response  string  `json:"response"` // its start
}

var deliveryListing = listing[deliveryRecord]{
	columns: []column[deliveryRecord]{
		{"WEBHOOK", func(d deliveryRecord) string { return d.WebhookID }},
		{"EVENT", func(d deliveryRecord) string { return d.EventID }},
		{"TYPE", func(d deliveryRecord) string { return d.EventType }},
		{"AT", func(d deliveryRecord) string { return formatTime(d.OccurredAt) }},
		{"STATE", func(d deliveryRecord) string { return d.State }},
		{"ATTEMPTS", func(d deliveryRecord) string { return fmt.Sprint(d.Attempts) }},
		{"NEXT", func(d deliveryRecord) string { return formatOptionalTime(d.NextAt) }},
	},
	id: func(d deliveryRecord) string { return d.EventID },
	empty: "No deliveries match. A webhook receives events of its workspace whose types are in its event_types,\n" +
		"from its creation on. `serve --delivery-retention` limits how long deliveries are kept.\n" +
		"`deviceaccess-server webhooks list` shows the webhooks.",
}

var attemptListing = listing[attemptRecord]{
	columns: []column[attemptRecord]{
		{"ATTEMPT", func(d attemptRecord) string { return fmt.Sprint(d.Number) }},
		{"STATUS", func(d attemptRecord) string {
			if d.Status == 0 {
				return "none"
			}
			return fmt.Sprint(d.Status)
		}},
		{"LATENCY", func(d attemptRecord) string { return fmt.Sprintf("%.0fms", d.LatencyMs) }},
		{"PROBLEM", func(d attemptRecord) string { return printable(d.Problem) }},
		{"RESPONSE", func(d attemptRecord) string { return fmt.Sprintf("%.80q", d.Response) }},
	},
}

func attemptsOf(ctx context.Context, a *app.Admin, e webhook.Endpoint, event uuid.UUID) ([]attemptRecord, error) {
	all, err := a.Access.Webhooks.ListDeliveryAttempts(ctx, principalOf(e), e.ID, event)
	records := make([]attemptRecord, len(all))
	for i, d := range all {
		records[i] = attemptRecord{
			Number:    i + 1,
			Status:    d.Status,
			LatencyMs: float64(d.Latency.Microseconds()) / 1000,
			Problem:   d.Error,
			Response:  d.Excerpt,
		}
	}
	return records, err
}

// replayPosition is the position of a replay: the last event of a webhook that is due again.
type replayPosition struct{ webhook, event uuid.UUID }

func (p replayPosition) String() string { return p.webhook.String() + "/" + p.event.String() }

func parseReplayPosition(text string) (p replayPosition, err error) {
	webhook, event, _ := strings.Cut(text, "/")
	if p.webhook, err = uuid.Parse(webhook); err == nil {
		p.event, err = uuid.Parse(event)
	}
	if err != nil {
		return p, usagef("--after: %q is not a place that a stopped replay has printed", text)
	}
	return p, nil
}

// batch is the part of a replay for one webhook.
type batch struct {
	webhook.Endpoint
	after uuid.UUID
	count int
}

func replay(
	ctx context.Context,
	c *cli.Command,
	a *app.Admin,
	webhooks []webhook.Endpoint,
	f webhook.DeliveryFilter,
) error {
	if f.States == nil {
		f.States = []webhook.DeliveryState{webhook.DeliveryFailed, webhook.DeliveryHeld}
	}
	todo, total, err := countReplay(ctx, c.String("after"), a, webhooks, f)
	if err != nil {
		return err
	}
	if total == 0 {
		fmt.Println(
			"There is nothing to replay. `deviceaccess-server webhooks deliveries` shows the deliveries and their states.",
		)
		return nil
	}
	if c.Bool("dry-run") {
		return nil
	}
	if !c.Bool("yes") {
		if err := confirm(ctx, fmt.Sprintf("Send %d deliveries again?", total)); err != nil {
			return err
		}
	}
	done := 0
	var skipped error
	for _, b := range todo {
		err := replayOne(ctx, a, b, f, &done, total)
		if _, one := errors.AsType[skippedWebhook](err); one {
			skipped = errors.Join(skipped, err)
		} else if err != nil {
			return fmt.Errorf("%w\nScheduled %d of %d deliveries", errors.Join(skipped, err), done, total)
		}
	}
	fmt.Printf("Scheduled %d deliveries. A running server sends them now.\n", done)
	return skipped
}

// skippedWebhook is an error that ends the replay of one webhook. The replay continues with the other webhooks.
type skippedWebhook struct{ error }

// deliveryStates are all states, in the order in which countReplay prints them.
var deliveryStates = []webhook.DeliveryState{
	webhook.DeliveryFailed, webhook.DeliveryHeld, webhook.DeliveryDelivered, webhook.DeliveryPending,
}

// countReplay prints and returns what a replay would send.
func countReplay(
	ctx context.Context,
	after string,
	a *app.Admin,
	webhooks []webhook.Endpoint,
	f webhook.DeliveryFilter,
) (todo []batch, total int, err error) {
	var from replayPosition
	if after != "" {
		if from, err = parseReplayPosition(after); err != nil {
			return nil, 0, err
		}
	}
	skip := after != ""
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for _, e := range webhooks {
		b := batch{Endpoint: e}
		if skip && e.ID != from.webhook {
			continue
		}
		if skip {
			b.after, skip = from.event, false
		}
		counts, err := a.Access.Webhooks.CountDeliveries(ctx, principalOf(e), e.ID, f, b.after)
		if err != nil {
			return nil, 0, err
		}
		line := e.ID.String() + "\t" + withoutQuery(e.URL)
		for _, state := range deliveryStates {
			if n := counts[state]; n > 0 {
				b.count += n
				line += fmt.Sprintf("\t%d %s", n, state)
			}
		}
		if b.count == 0 {
			continue
		}
		if e.Disabled {
			line += "\tis disabled and will be enabled"
		}
		if e.Suspended {
			line += "\twaits until its workspace is unsuspended"
		}
		fmt.Fprintln(t, line)
		todo, total = append(todo, b), total+b.count
	}
	if skip {
		return nil, 0, usagef("--after: webhook %s is not among those to replay", from.webhook)
	}
	return todo, total, t.Flush()
}

func replayOne(ctx context.Context, a *app.Admin, b batch, f webhook.DeliveryFilter, done *int, total int) error {
	deleted := skippedWebhook{fmt.Errorf("webhook %s was deleted during the replay", b.ID)}
	_, err := a.Access.Webhooks.EnableWebhook(ctx, principalOf(b.Endpoint), b.ID)
	if isNotFound(err) {
		return deleted
	}
	if err != nil {
		return err
	}
	at := replayPosition{b.ID, b.after}
	for more := true; more; {
		r, err := a.Access.Webhooks.ReplayDeliveries(ctx, principalOf(b.Endpoint), b.ID, f, at.event)
		if e, ok := errors.AsType[*domain.Error](err); ok && e.Type == "webhook_disabled" {
			return skippedWebhook{
				fmt.Errorf(
					"webhook %s was disabled during the replay: %s Fix the endpoint, check it with `deviceaccess-server webhooks "+
						"test %s`, and run the replay again",
					b.ID,
					printable(e.Message),
					b.ID,
				),
			}
		}
		if isNotFound(err) {
			return deleted
		}
		if err != nil {
			return fmt.Errorf("%w\nTo resume, run the same command with --after %s", err, at)
		}
		at.event, more = r.Last, r.More
		if *done += r.Deliveries; more {
			fmt.Fprintf(os.Stderr, "Scheduled %d of %d deliveries\n", *done, total)
		}
	}
	return nil
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*domain.Error](err)
	return ok && e.Kind == domain.NotFound
}

// confirm asks a question and returns an error unless the answer is yes.
func confirm(ctx context.Context, question string) error {
	fmt.Fprint(os.Stderr, question+" [y/N] ")
	reply, err := answer(ctx)
	switch reply = strings.ToLower(strings.TrimSpace(reply)); {
	case reply == "y" || reply == "yes":
		return nil
	case errors.Is(err, io.EOF) && reply == "":
		return refusedf("nothing was sent: no answer on standard input; --yes skips the confirmation")
	}
	return refusedf("nothing was sent")
}
