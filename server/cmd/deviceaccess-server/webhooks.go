package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/webhook"
)

func webhooksCommand() *cli.Command {
	return &cli.Command{
		Name:  "webhooks",
		Usage: "list and replay deliveries, and test, disable, and enable webhooks, also while the server runs",
		Commands: []*cli.Command{
			{
				Name: "list",
				Usage: "list the webhooks of all workspaces and their states; with --server or --profile, those of one " +
					"workspace over the API",
				Flags:  append(apiCommandFlags(), databaseFlags()...),
				Action: onServerOr(listWebhooksOfServer, listWebhooks),
			},
			{
				Name:      "deliveries",
				Usage:     "list the latest deliveries of one or all webhooks; with --event, also the attempts",
				ArgsUsage: "[WEBHOOK_ID]",
				Flags: append(append(deliveryFlags(), &cli.IntFlag{
					Name:      "limit",
					Value:     50,
					Usage:     "show at most `NUMBER` deliveries per webhook",
					Validator: atLeast(1),
				}), append(outputFlags(), databaseFlags()...)...),
				Action: onDeliveries(listDeliveries),
			},
			{
				Name:      "replay",
				Usage:     "resend failed and held deliveries of one or all webhooks, and enable these webhooks",
				ArgsUsage: "[WEBHOOK_ID]",
				Flags: append(append(
					deliveryFlags(),
					&cli.BoolFlag{Name: "dry-run", Usage: "only count what would be sent"},
					&cli.BoolFlag{Name: "yes", Usage: "skip the confirmation"},
					&cli.StringFlag{
						Name:  "after",
						Usage: "resume after `PLACE`, as printed by a replay that stopped early",
					},
				), databaseFlags()...),
				Action: onDeliveries(replay),
			},
			{
				Name:      "test",
				Usage:     "send a signed " + webhook.TestEvent + " event to one webhook from this machine and print the response",
				ArgsUsage: "WEBHOOK_ID",
				Flags:     append([]cli.Flag{allowFlag()}, databaseFlags()...),
				Action:    onWebhook(testWebhook),
			},
			{
				Name:      "disable",
				Usage:     "stop sending events to a webhook; pending and new events are held",
				ArgsUsage: "WEBHOOK_ID",
				Flags:     databaseFlags(),
				Action:    onWebhook(disable),
			},
			{
				Name:      "enable",
				Usage:     "send new events to a disabled webhook again; held events stay held",
				ArgsUsage: "WEBHOOK_ID",
				Flags:     databaseFlags(),
				Action:    onWebhook(enable),
			},
			{
				Name:      "rotate-secret",
				Usage:     "create a new secret for a webhook and print it once; both secrets sign for a while",
				ArgsUsage: "WEBHOOK_ID",
				Flags: append([]cli.Flag{&durationFlag{
					Name:  "overlap",
					Value: webhook.DefaultOverlap,
					Usage: "sign with both secrets for `DURATION`; 0 ends the old secret immediately, for a leaked secret",
				}}, databaseFlags()...),
				Action: onWebhook(rotate),
			},
		},
	}
}

func allowFlag() cli.Flag {
	return &cli.StringSliceFlag{
		Name:      "allow-webhook-prefix",
		Sources:   env("DEVICEACCESS_ALLOW_WEBHOOK_PREFIX"),
		Category:  "Server",
		Validator: networks,
		Usage:     "allow webhooks to the network `CIDR`, such as 10.0.0.0/8, in addition to public addresses; repeatable",
	}
}

// onWebhook opens the database and runs act on the webhook that the argument names.
func onWebhook(act func(context.Context, *cli.Command, *app.Admin, webhook.Endpoint) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		id, err := uuid.Parse(c.Args().First())
		if err != nil {
			return usagef("the argument must be a webhook_id; `deviceaccess-server webhooks list` shows the ids")
		}
		return withAdmin(ctx, c, func(a *app.Admin) error {
			e, err := a.Access.Webhooks.GetEndpoint(ctx, id)
			if err != nil {
				return err
			}
			return act(ctx, c, a, e)
		})
	}
}

// principalOf returns a principal with full access to the workspace of a webhook.
func principalOf(e webhook.Endpoint) domain.Principal {
	return domain.Principal{WorkspaceID: e.WorkspaceID}
}

// webhookRecord is what JSON and YAML show of a webhook of any workspace.
type webhookRecord struct {
	ID         string      `json:"webhook_id"`
	Workspace  namedObject `json:"workspace"`
	URL        string      `json:"url"` // without its query, which may contain a token
	EventTypes []string    `json:"event_types"`
	Disabled   bool        `json:"disabled"`
	Failures   int         `json:"failures_in_a_row"`
	State      string      `json:"state"`
	Succeeded  *time.Time  `json:"last_success_at,omitempty"`
	Waiting    int         `json:"events_waiting"` // up to webhook.MaxWaiting
}

func (w webhookRecord) waiting() string {
	if w.Waiting >= webhook.MaxWaiting {
		return fmt.Sprintf("%d or more", webhook.MaxWaiting)
	}
	return strconv.Itoa(w.Waiting)
}

func listWebhooks(ctx context.Context, c *cli.Command, a *app.Admin) error {
	all, err := a.Access.Webhooks.ListEndpoints(ctx)
	if err != nil {
		return err
	}
	workspaces, err := workspaceNames(ctx, a)
	if err != nil {
		return err
	}
	records := make([]webhookRecord, len(all))
	for i, e := range all {
		records[i] = webhookRecord{
			ID:         e.ID.String(),
			Workspace:  namedObject{e.WorkspaceID.String(), workspaces[e.WorkspaceID]},
			URL:        withoutQuery(e.URL),
			EventTypes: e.EventTypes,
			Disabled:   e.DisabledAt != nil,
			Failures:   e.Failures,
			State:      webhookState(e.Webhook, e.FailingFor, e.Suspended),
			Succeeded:  e.LastSuccess,
			Waiting:    e.Waiting,
		}
	}
	return webhookListing.print(c, records)
}

var webhookListing = listing[webhookRecord]{
	columns: []column[webhookRecord]{
		{"WEBHOOK", func(w webhookRecord) string { return w.ID }},
		{"WORKSPACE", func(w webhookRecord) string { return named(w.Workspace.Name, w.Workspace.ID) }},
		{"URL", func(w webhookRecord) string { return w.URL }},
		{"EVENT TYPES", func(w webhookRecord) string { return printable(strings.Join(w.EventTypes, ",")) }},
		{"STATE", func(w webhookRecord) string { return printable(w.State) }},
		{"LAST SUCCESS", func(w webhookRecord) string { return formatOptionalTime(w.Succeeded) }},
		{"WAITING", webhookRecord.waiting},
	},
	id: func(w webhookRecord) string { return w.ID },
	empty: "There are no webhooks yet. Clients create them with POST /webhooks/create, or with the Terraform resource " +
		"deviceaccess_webhook.",
}

// listWebhooksOfServer lists the webhooks of the workspace of a key, over the API.
func listWebhooksOfServer(ctx context.Context, c *cli.Command, to *client) error {
	workspace, err := api.Call[api.WorkspaceResponse](ctx, to.GetWorkspace, api.EmptyRequest{})
	if err != nil {
		return err
	}
	all, err := api.Collect(to.Webhooks(ctx))
	if err != nil {
		return err
	}
	records := make([]webhookRecord, len(all))
	for i, w := range all {
		records[i] = webhookRecord{
			ID:         w.WebhookID,
			Workspace:  namedObject{workspace.Workspace.WorkspaceID, workspace.Workspace.Name},
			URL:        withoutQuery(w.URL),
			EventTypes: w.EventTypes,
			Disabled:   w.Disabled != nil && *w.Disabled,
			Failures:   w.ConsecutiveFailures,
			Succeeded:  w.LastSuccessAt,
			Waiting:    domain.Value(w.EventsWaiting),
		}
		var failingFor time.Duration
		if w.FailingSince != nil {
			failingFor = time.Since(*w.FailingSince)
		}
		records[i].State = webhookState(webhook.Webhook{
			DisabledAt:     w.DisabledAt,
			DisabledReason: w.DisabledReason,
			Failures:       w.ConsecutiveFailures,
		}, failingFor, false) // the API does not list the webhooks of a suspended workspace
	}
	return webhookListing.print(c, records)
}

// withoutQuery returns a printable URL without its query, which may contain a token.
func withoutQuery(url string) string {
	plain, _, found := strings.Cut(url, "?")
	if found {
		plain += "?…"
	}
	return printable(plain)
}

// webhookState returns the state of a webhook in words.
func webhookState(w webhook.Webhook, failingFor time.Duration, suspended bool) string {
	switch {
	case w.DisabledAt != nil && suspended:
		return "workspace suspended; disabled since " + formatTime(*w.DisabledAt) + ": " + w.DisabledReason
	case w.DisabledAt != nil:
		return "disabled since " + formatTime(*w.DisabledAt) + ": " + w.DisabledReason
	case suspended:
		return "waiting: workspace suspended"
	case w.Failures > 0:
		return fmt.Sprintf("failing for %s: %d attempts in a row", failingFor.Round(time.Second), w.Failures)
	}
	return "enabled"
}

func disable(ctx context.Context, _ *cli.Command, a *app.Admin, e webhook.Endpoint) error {
	was, err := a.Access.Webhooks.DisableWebhook(ctx, principalOf(e), e.ID, "An operator of the server disabled it.")
	if err != nil {
		return err
	}
	if was {
		fmt.Println("The webhook is already disabled.")
		return nil
	}
	fmt.Printf("The webhook is disabled. Its pending and new events are held.\n"+
		"`deviceaccess-server webhooks enable %s` resumes with new events.\n"+
		"`webhooks replay` also sends the held ones.\n", e.ID)
	return nil
}

func enable(ctx context.Context, _ *cli.Command, a *app.Admin, e webhook.Endpoint) error {
	was, err := a.Access.Webhooks.EnableWebhook(ctx, principalOf(e), e.ID)
	if err != nil {
		return err
	}
	if !was {
		fmt.Println("The webhook is already enabled.")
		return nil
	}
	held, err := a.Access.Webhooks.CountDeliveries(
		ctx,
		principalOf(e),
		e.ID,
		webhook.DeliveryFilter{States: []webhook.DeliveryState{webhook.DeliveryHeld}},
		uuid.Nil,
	)
	if err != nil {
		return err
	}
	fmt.Println("The webhook is enabled and receives new events.")
	if n := held[webhook.DeliveryHeld]; n > 0 {
		fmt.Printf("Held deliveries: %d. `deviceaccess-server webhooks replay --state held %s` sends them.\n", n, e.ID)
	}
	return nil
}

func rotate(ctx context.Context, c *cli.Command, a *app.Admin, e webhook.Endpoint) error {
	w, until, err := a.Access.Webhooks.RotateSecret(ctx, principalOf(e), e.ID.String(), c.Duration("overlap"))
	if err != nil {
		return err
	}
	if until == nil {
		fmt.Fprintln(os.Stderr, "The old secret is invalid now. The new secret, shown only once:")
	} else {
		fmt.Fprintf(
			os.Stderr,
			"Both secrets sign until %s; configure the receiver with the new secret until then.\n"+
				"The new secret, shown only once:\n",
			formatTime(*until),
		)
	}
	return printSecret(w.Secret, "rotate the secret again")
}

func testWebhook(ctx context.Context, c *cli.Command, a *app.Admin, e webhook.Endpoint) error {
	allow := webhook.Options{AllowPrefixes: prefixes(c, "allow-webhook-prefix")}
	got := webhook.New(a.Access.Webhooks, allow).SendTest(ctx, e)
	if got.Sent {
		fmt.Printf(
			"Sent     %s %s to %s\nLatency  %s\n",
			webhook.TestEvent,
			got.EventID,
			withoutQuery(e.URL),
			got.Latency.Round(time.Millisecond),
		)
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
		fmt.Printf(
			"The webhook is disabled: %s Enable it with `deviceaccess-server webhooks enable %s`.\n",
			printable(e.DisabledReason),
			e.ID,
		)
	}
	if got.Problem != "" {
		return fmt.Errorf("the webhook does not work: %s\n%s", printable(got.Problem), printable(got.Advice))
	}
	fmt.Println("The webhook works.")
	return nil
}
