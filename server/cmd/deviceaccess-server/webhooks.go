package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func webhooksCommand() *cli.Command {
	return &cli.Command{
		Name:  "webhooks",
		Usage: "see what became of deliveries, and send them again; the server may run meanwhile",
		Commands: []*cli.Command{
			{
				Name: "deliveries", Usage: "list the latest deliveries to a webhook; with --event the attempts to deliver that one", ArgsUsage: "WEBHOOK_ID",
				Flags: append([]cli.Flag{
					&cli.StringFlag{Name: "event", Usage: "`ID` of an event"},
					&cli.IntFlag{Name: "limit", Value: 50, Usage: "`NUMBER` of deliveries at most"},
				}, databaseFlags()...),
				Action: onWebhook(func(ctx context.Context, c *cli.Command, a *app.Admin, p access.Principal, id uuid.UUID) error {
					if c.String("event") == "" {
						return listDeliveries(ctx, a, p, id, c.Int("limit"))
					}
					event, err := uuid.Parse(c.String("event"))
					if err != nil {
						return fmt.Errorf("--event: %q is no event id", c.String("event"))
					}
					return listAttempts(ctx, a, p, id, event)
				}),
			},
			{
				Name: "replay", Usage: "send deliveries again that were given up or held back; a disabled webhook is enabled by it", ArgsUsage: "WEBHOOK_ID",
				Flags: append([]cli.Flag{
					&cli.StringFlag{Name: "event", Usage: "`ID` of the only event to send; without it all"},
					&cli.StringSliceFlag{Name: "state", Value: []string{"failed", "held"}, Usage: "send deliveries in this `STATE`: failed, held or delivered; repeatable"},
					&cli.TimestampFlag{Name: "since", Usage: "send deliveries made at this `TIME` or later, written like 2026-01-02T15:04:05Z", Config: cli.TimestampConfig{Layouts: []string{time.RFC3339}}},
					&cli.TimestampFlag{Name: "until", Usage: "send deliveries made before this `TIME`", Config: cli.TimestampConfig{Layouts: []string{time.RFC3339}}},
				}, databaseFlags()...),
				Action: onWebhook(replay),
			},
		},
	}
}

// onWebhook opens the data and finds the workspace of the webhook that the command names.
func onWebhook(act func(context.Context, *cli.Command, *app.Admin, access.Principal, uuid.UUID) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		id, err := uuid.Parse(c.Args().First())
		if err != nil {
			return fmt.Errorf("name the webhook by its webhook_id")
		}
		return withAdmin(ctx, c, func(a *app.Admin) error {
			e, err := a.Access.GetEndpoint(ctx, id)
			if err != nil {
				return err
			}
			return act(ctx, c, a, access.Principal{WorkspaceID: e.WorkspaceID}, id)
		})
	}
}

func listDeliveries(ctx context.Context, a *app.Admin, p access.Principal, webhook uuid.UUID, limit int) error {
	all, err := a.Access.ListDeliveries(ctx, p, webhook.String(), int32(min(max(limit, 1), 1<<30)))
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "EVENT\tSTATE\tATTEMPTS\tNEXT")
	for _, d := range all {
		next := ""
		if d.Next != nil {
			next = d.Next.Format(time.DateTime)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", d.EventID, d.State, d.Attempts, next)
	}
	return t.Flush()
}

func listAttempts(ctx context.Context, a *app.Admin, p access.Principal, webhook, event uuid.UUID) error {
	all, err := a.Access.ListDeliveryAttempts(ctx, p, webhook, event)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ATTEMPT\tSTATUS\tLATENCY\tPROBLEM\tRESPONSE")
	for i, d := range all {
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%.80q\n", i+1, d.Status, d.Latency.Round(time.Millisecond), d.Error, d.Excerpt)
	}
	return t.Flush()
}

func replay(ctx context.Context, c *cli.Command, a *app.Admin, p access.Principal, webhook uuid.UUID) error {
	r := access.Replay{Since: c.Timestamp("since"), Until: c.Timestamp("until")}
	for _, s := range c.StringSlice("state") {
		if err := oneOf("failed", "held", "delivered")(s); err != nil {
			return fmt.Errorf("--state: %w", err)
		}
		r.States = append(r.States, access.DeliveryState(s))
	}
	if text := c.String("event"); text != "" {
		event, err := uuid.Parse(text)
		if err != nil {
			return fmt.Errorf("--event: %q is no event id", text)
		}
		r.EventID = &event
	}
	n, err := a.Access.ReplayDeliveries(ctx, p, webhook.String(), r)
	if err != nil {
		return err
	}
	fmt.Printf("%d deliveries are due again\n", n)
	return nil
}
