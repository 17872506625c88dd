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

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// deliveryFlags say which deliveries are meant.
func deliveryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "event", Usage: "only of the event with this `ID`"},
		&cli.StringSliceFlag{Name: "type", Usage: "only of events of this `TYPE`, such as device.connected; repeatable"},
		&cli.StringSliceFlag{Name: "state", Usage: "only in this `STATE`: pending, delivered, failed (given up) or held (the webhook is disabled); repeatable"},
		&cli.StringFlag{Name: "since", Usage: "only of events made at this `TIME` or later: 2026-01-02T15:04:05Z, or how long ago, such as 90m, 12h or 7d"},
		&cli.StringFlag{Name: "until", Usage: "only of events made before this `TIME`, written the same way"},
	}
}

// onDeliveries opens the data, and reads which deliveries of which webhooks are meant.
func onDeliveries(act func(context.Context, *cli.Command, *app.Admin, []access.Endpoint, access.DeliveryFilter) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		f, err := deliveryFilter(c, time.Now())
		if err != nil {
			return err
		}
		var wanted uuid.UUID
		if c.Args().Present() {
			if wanted, err = uuid.Parse(c.Args().First()); err != nil {
				return fmt.Errorf("%q is no webhook_id; `deviceaccess-server webhooks list` shows them", c.Args().First())
			}
		}
		return withAdmin(ctx, c, func(a *app.Admin) error {
			all, err := a.Access.ListEndpoints(ctx)
			if err != nil {
				return err
			}
			if !c.Args().Present() {
				return act(ctx, c, a, all, f)
			}
			for _, e := range all {
				if e.ID == wanted {
					return act(ctx, c, a, []access.Endpoint{e}, f)
				}
			}
			return fmt.Errorf("there is no webhook %s; `deviceaccess-server webhooks list` shows them", wanted)
		})
	}
}

func deliveryFilter(c *cli.Command, now time.Time) (f access.DeliveryFilter, err error) {
	if text := c.String("event"); text != "" {
		event, err := uuid.Parse(text)
		if err != nil {
			return f, fmt.Errorf("--event: %q is no event id", text)
		}
		f.EventID = &event
	}
	for _, t := range c.StringSlice("type") {
		if err := access.CheckEventType(t); err != nil || t == "*" {
			return f, fmt.Errorf("--type: there are no events of type %q", t)
		}
		f.EventTypes = append(f.EventTypes, t)
	}
	for _, s := range c.StringSlice("state") {
		if err := oneOf("pending", "delivered", "failed", "held")(s); err != nil {
			return f, fmt.Errorf("--state: %w", err)
		}
		f.States = append(f.States, access.DeliveryState(s))
	}
	for name, at := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := c.String(name); text != "" {
			if *at, err = moment(text, now); err != nil {
				return f, fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	return f, nil
}

// moment reads a time, or how long ago it was.
func moment(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := parseSpan(text)
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%q is neither a time like 2026-01-02T15:04:05Z nor how long ago, like 90m, 12h or 7d", text)
	}
	return now.Add(-ago), nil
}

func listDeliveries(ctx context.Context, c *cli.Command, a *app.Admin, webhooks []access.Endpoint, f access.DeliveryFilter) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "WEBHOOK\tEVENT\tTYPE\tAT\tSTATE\tATTEMPTS\tNEXT")
	found := 0
	for _, e := range webhooks {
		all, err := a.Access.ListDeliveries(ctx, in(e), e.ID, f, c.Int("limit"))
		if err != nil {
			return err
		}
		found += len(all)
		for _, d := range all {
			next := ""
			if d.Next != nil {
				next = d.Next.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", e.ID, d.EventID, d.EventType, d.OccurredAt.Format(time.RFC3339), d.State, d.Attempts, next)
		}
	}
	if found == 0 {
		fmt.Println("There are no such deliveries. A webhook is given the events of its workspace that its event_types name and that were made after it;\n" +
			"they are kept as long as `serve --delivery-retention` says. `deviceaccess-server webhooks list` shows the webhooks.")
		return nil
	}
	if err := t.Flush(); err != nil || f.EventID == nil {
		return err
	}
	for _, e := range webhooks {
		if err := listAttempts(ctx, a, e, *f.EventID); err != nil {
			return err
		}
	}
	return nil
}

func listAttempts(ctx context.Context, a *app.Admin, e access.Endpoint, event uuid.UUID) error {
	all, err := a.Access.ListDeliveryAttempts(ctx, in(e), e.ID, event)
	if err != nil || len(all) == 0 {
		return err
	}
	fmt.Printf("\nAttempts to deliver to %s:\n", e.ID)
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ATTEMPT\tSTATUS\tLATENCY\tPROBLEM\tRESPONSE")
	for i, d := range all {
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%.80q\n", i+1, d.Status, d.Latency.Round(time.Millisecond), cell(d.Error), d.Excerpt)
	}
	return t.Flush()
}

// place is how far a replay has come: the deliveries of a webhook up to that of an event.
type place struct{ webhook, event uuid.UUID }

func (p place) String() string { return p.webhook.String() + "/" + p.event.String() }

func parsePlace(text string) (p place, err error) {
	webhook, event, _ := strings.Cut(text, "/")
	if p.webhook, err = uuid.Parse(webhook); err == nil {
		p.event, err = uuid.Parse(event)
	}
	if err != nil {
		return p, fmt.Errorf("--after: %q is no place that a replay has named", text)
	}
	return p, nil
}

// batch is what a replay has to do at one webhook.
type batch struct {
	access.Endpoint
	after uuid.UUID
	count int
}

func replay(ctx context.Context, c *cli.Command, a *app.Admin, webhooks []access.Endpoint, f access.DeliveryFilter) error {
	if f.States == nil {
		f.States = []access.DeliveryState{access.DeliveryFailed, access.DeliveryHeld}
	}
	todo, total, err := countReplay(ctx, c.String("after"), a, webhooks, f)
	if err != nil {
		return err
	}
	if total == 0 {
		fmt.Println("There is nothing to replay. `deviceaccess-server webhooks deliveries` shows what there is, in which state.")
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
	var left error
	for _, b := range todo {
		err := replayOne(ctx, a, b, f, &done, total)
		if _, one := errors.AsType[leftOut](err); one {
			left = errors.Join(left, err)
		} else if err != nil {
			return fmt.Errorf("%w\n%d of %d are due again", errors.Join(left, err), done, total)
		}
	}
	fmt.Printf("%d deliveries are due again. A running server sends them now.\n", done)
	return left
}

// leftOut says why the replay of one webhook has ended early; that of the others goes on.
type leftOut struct{ error }

// countReplay shows what would be sent again.
func countReplay(ctx context.Context, after string, a *app.Admin, webhooks []access.Endpoint, f access.DeliveryFilter) (todo []batch, total int, err error) {
	var from place
	if after != "" {
		if from, err = parsePlace(after); err != nil {
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
		counts, err := a.Access.CountDeliveries(ctx, in(e), e.ID, f, b.after)
		if err != nil {
			return nil, 0, err
		}
		line := e.ID.String() + "\t" + withoutQuery(e.URL)
		for _, state := range []access.DeliveryState{access.DeliveryFailed, access.DeliveryHeld, access.DeliveryDelivered, access.DeliveryPending} {
			if n := counts[state]; n > 0 {
				b.count += n
				line += fmt.Sprintf("\t%d %s", n, state)
			}
		}
		if b.count == 0 {
			continue
		}
		if e.Disabled {
			line += "\tis disabled, and will be enabled"
		}
		if e.Suspended {
			line += "\tis sent them once its workspace is no longer suspended"
		}
		fmt.Fprintln(t, line)
		todo, total = append(todo, b), total+b.count
	}
	if skip {
		return nil, 0, fmt.Errorf("--after: the webhook %s is none of those to replay", from.webhook)
	}
	return todo, total, t.Flush()
}

func replayOne(ctx context.Context, a *app.Admin, b batch, f access.DeliveryFilter, done *int, total int) error {
	deleted := leftOut{fmt.Errorf("%s has been deleted meanwhile", b.ID)}
	_, err := a.Access.EnableWebhook(ctx, in(b.Endpoint), b.ID)
	if isNotFound(err) {
		return deleted
	}
	if err != nil {
		return err
	}
	at := place{b.ID, b.after}
	for more := true; more; {
		r, err := a.Access.ReplayDeliveries(ctx, in(b.Endpoint), b.ID, f, at.event)
		if e, ok := errors.AsType[*access.Error](err); ok && e.Type == "webhook_disabled" {
			return leftOut{fmt.Errorf("%s is disabled again: %s Mend the endpoint (`deviceaccess-server webhooks test %s` tries it) and replay once more", b.ID, cell(e.Message), b.ID)}
		}
		if isNotFound(err) {
			return deleted
		}
		if err != nil {
			return fmt.Errorf("%w\nTo go on, add --after %s to the same command", err, at)
		}
		at.event, more = r.Last, r.More
		if *done += r.Deliveries; more {
			fmt.Fprintf(os.Stderr, "%d of %d are due again\n", *done, total)
		}
	}
	return nil
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*access.Error](err)
	return ok && e.Kind == access.NotFound
}

// confirm asks, and fails unless the answer is yes.
func confirm(ctx context.Context, question string) error {
	fmt.Fprint(os.Stderr, question+" [y/N] ")
	said, err := answer(ctx)
	switch said = strings.ToLower(strings.TrimSpace(said)); {
	case said == "y" || said == "yes":
		return nil
	case errors.Is(err, io.EOF) && said == "":
		return fmt.Errorf("nothing was sent: nobody has answered; --yes answers beforehand")
	}
	return fmt.Errorf("nothing was sent")
}
