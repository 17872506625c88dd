package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

func webhooksCommand() *cli.Command {
	return &cli.Command{
		Name:  "webhooks",
		Usage: "see what became of deliveries, send them again, try and mend webhooks; the server may run meanwhile",
		Commands: []*cli.Command{
			{
				Name: "list", Usage: "list the webhooks of all workspaces, and whether they receive", Flags: databaseFlags(),
				Action: func(ctx context.Context, c *cli.Command) error {
					return withAdmin(ctx, c, func(a *app.Admin) error { return listWebhooks(ctx, a) })
				},
			},
			{
				Name: "deliveries", Usage: "list the latest deliveries, to one webhook or to all; with --event also the attempts", ArgsUsage: "[WEBHOOK_ID]",
				Flags:  append(append(deliveryFlags(), &cli.IntFlag{Name: "limit", Value: 50, Usage: "`NUMBER` of deliveries at most, of each webhook", Validator: atLeast(1)}), databaseFlags()...),
				Action: onDeliveries(listDeliveries),
			},
			{
				Name: "replay", Usage: "send deliveries again, by default those that were given up or held; a webhook that is disabled is enabled by it", ArgsUsage: "[WEBHOOK_ID]",
				Flags: append(append(deliveryFlags(),
					&cli.BoolFlag{Name: "dry-run", Usage: "count what would be sent, and end"},
					&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
					&cli.StringFlag{Name: "after", Usage: "go on after this `PLACE`, which a replay that was broken off has named"}), databaseFlags()...),
				Action: onDeliveries(replay),
			},
			{
				Name: "test", Usage: "send a signed event of type " + webhook.TestEvent + " to one webhook now, from this machine, and tell what comes of it", ArgsUsage: "WEBHOOK_ID",
				Flags:  append([]cli.Flag{allowFlag()}, databaseFlags()...),
				Action: onWebhook(try),
			},
			{
				Name: "disable", Usage: "send no more events to a webhook; what waits, and what happens from now on, is held", ArgsUsage: "WEBHOOK_ID", Flags: databaseFlags(),
				Action: onWebhook(disable),
			},
			{
				Name: "enable", Usage: "send events to a disabled webhook again, from now on", ArgsUsage: "WEBHOOK_ID", Flags: databaseFlags(),
				Action: onWebhook(enable),
			},
			{
				Name: "rotate-secret", Usage: "give a webhook a new secret and print it; the old one signs beside it for a while", ArgsUsage: "WEBHOOK_ID",
				Flags: append([]cli.Flag{&spanFlag{Name: "overlap", Value: 24 * time.Hour,
					Usage: "`TIME` in which both secrets sign; 0 ends the old one at once, as when it has become known"}}, databaseFlags()...),
				Action: onWebhook(rotate),
			},
		},
	}
}

func allowFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "allow-webhook-prefix", Sources: env("DEVICEACCESS_ALLOW_WEBHOOK_PREFIX"), Category: "Server",
		Usage: "`CIDR` of addresses that webhooks may be sent to although they are not public, such as 10.0.0.0/8; repeatable"}
}

// onWebhook opens the data and finds the webhook that the command names.
func onWebhook(act func(context.Context, *cli.Command, *app.Admin, access.Endpoint) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		id, err := uuid.Parse(c.Args().First())
		if err != nil {
			return fmt.Errorf("name the webhook by its webhook_id; `deviceaccess-server webhooks list` shows them")
		}
		return withAdmin(ctx, c, func(a *app.Admin) error {
			e, err := a.Access.GetEndpoint(ctx, id)
			if err != nil {
				return err
			}
			return act(ctx, c, a, e)
		})
	}
}

// in is the workspace of a webhook, as one who may do everything there.
func in(e access.Endpoint) access.Principal { return access.Principal{WorkspaceID: e.WorkspaceID} }

func listWebhooks(ctx context.Context, a *app.Admin) error {
	all, err := a.Access.ListEndpoints(ctx)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "WEBHOOK\tWORKSPACE\tURL\tEVENT TYPES\tSTATE")
	for _, e := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", e.ID, e.WorkspaceID, withoutQuery(e.URL), cell(strings.Join(e.EventTypes, ",")), cell(health(e)))
	}
	return t.Flush()
}

// withoutQuery is a URL as a cell, without what may be a token.
func withoutQuery(url string) string {
	plain, _, found := strings.Cut(url, "?")
	if found {
		plain += "?…"
	}
	return cell(plain)
}

func health(e access.Endpoint) string {
	switch {
	case e.DisabledAt != nil && e.Suspended:
		return "its workspace is suspended; disabled since " + e.DisabledAt.UTC().Format(time.RFC3339) + ": " + e.DisabledReason
	case e.DisabledAt != nil:
		return "disabled since " + e.DisabledAt.UTC().Format(time.RFC3339) + ": " + e.DisabledReason
	case e.Suspended:
		return "waits: its workspace is suspended"
	case e.Failures > 0:
		return fmt.Sprintf("failing for %s: %d attempts in a row", e.FailingFor.Round(time.Second), e.Failures)
	}
	return "enabled"
}

func disable(ctx context.Context, _ *cli.Command, a *app.Admin, e access.Endpoint) error {
	was, err := a.Access.DisableWebhook(ctx, in(e), e.ID, "An operator of the server has disabled it.")
	if err != nil {
		return err
	}
	if was {
		fmt.Println("The webhook was disabled already.")
		return nil
	}
	fmt.Printf("The webhook is sent no more. What waits for it is held, and what happens meanwhile, until it is enabled:\n"+
		"`deviceaccess-server webhooks enable %s` sends what happens from then on, and `webhooks replay` what is held, too.\n", e.ID)
	return nil
}

func enable(ctx context.Context, _ *cli.Command, a *app.Admin, e access.Endpoint) error {
	was, err := a.Access.EnableWebhook(ctx, in(e), e.ID)
	if err != nil {
		return err
	}
	if !was {
		fmt.Println("The webhook was enabled already.")
		return nil
	}
	held, err := a.Access.CountDeliveries(ctx, in(e), e.ID, access.DeliveryFilter{States: []access.DeliveryState{access.DeliveryHeld}}, uuid.Nil)
	if err != nil {
		return err
	}
	fmt.Println("The webhook receives events from now on.")
	if n := held[access.DeliveryHeld]; n > 0 {
		fmt.Printf("Held meanwhile: %d. `deviceaccess-server webhooks replay --state held %s` sends them.\n", n, e.ID)
	}
	return nil
}

func rotate(ctx context.Context, c *cli.Command, a *app.Admin, e access.Endpoint) error {
	w, until, err := a.Access.RotateSecret(ctx, in(e), e.ID.String(), c.Duration("overlap"))
	if err != nil {
		return err
	}
	if until == nil {
		fmt.Fprintln(os.Stderr, "The old secret has ended. The new one:")
	} else {
		fmt.Fprintf(os.Stderr, "The old secret signs too until %s; give the receiver the new one before. It is:\n", until.UTC().Format(time.RFC3339))
	}
	return showOnce(w.Secret, "rotate it once more")
}

func try(ctx context.Context, c *cli.Command, a *app.Admin, e access.Endpoint) error {
	allow, err := prefixes("allow-webhook-prefix", c.StringSlice("allow-webhook-prefix"))
	if err != nil {
		return err
	}
	got := webhook.New(a.Access, webhook.Options{AllowPrefixes: allow}).Try(ctx, e)
	if got.Sent {
		fmt.Printf("Sent     %s %s to %s\nLatency  %s\n", webhook.TestEvent, got.EventID, withoutQuery(e.URL), got.Latency.Round(time.Millisecond))
	} else {
		fmt.Printf("Nothing was sent to %s.\n", withoutQuery(e.URL))
	}
	if got.Status != 0 {
		fmt.Printf("Status   %d\n", got.Status)
	}
	if got.Excerpt != "" {
		fmt.Printf("Answer   %.200q\n", got.Excerpt)
	}
	if e.Disabled {
		fmt.Printf("The webhook is disabled: %s `deviceaccess-server webhooks enable %s` ends that.\n", cell(e.DisabledReason), e.ID)
	}
	if got.Problem != "" {
		return fmt.Errorf("the webhook does not work: %s\n%s", cell(got.Problem), cell(got.Advice))
	}
	fmt.Println("The webhook works.")
	return nil
}
