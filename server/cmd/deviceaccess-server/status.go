package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/health"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show what is wrong now in a workspace and its server, worst first, over the API",
		Description: "The exit code is 0 if nothing is wrong, and 1 if something is. A code counts as overdue if its device is\n" +
			"online and has not set or removed it for 10 minutes. While a part of the server is down, only the server is shown.",
		Flags:  apiCommandFlags(),
		Action: withClient(showStatus),
	}
}

// The kinds of findings, worst first.
const (
	findingServerDown = iota
	findingAccount
	findingCodeOverdue
	findingCodeError
	findingDeviceOffline
	findingBatteryCritical
	findingWebhook
	findingServerDegraded
	findingBatteryLow
)

// finding is something that is wrong.
type finding struct {
	rank int

	Kind    string     `json:"kind"` // server, account, code, device, battery, or webhook
	ID      string     `json:"id,omitempty"`
	Name    string     `json:"name"`
	Problem string     `json:"problem"`
	Since   *time.Time `json:"since,omitempty"`
	// Next is a command that shows more, without the name of the program.
	Next string `json:"next,omitempty"`
}

// workspaceStatus is what status prints.
type workspaceStatus struct {
	Server string `json:"server"`
	// Workspace and Counts are nil if a part of the server is down.
	Workspace *namedObject  `json:"workspace,omitempty"`
	Counts    *statusCounts `json:"counts,omitempty"`
	OK        bool          `json:"ok"`
	Findings  []finding     `json:"findings"`
}

type namedObject struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type statusCounts struct {
	Accounts int `json:"accounts"`
	Devices  int `json:"devices"`
	Codes    int `json:"codes"`
	Webhooks int `json:"webhooks"`
}

func showStatus(ctx context.Context, c *cli.Command, to *client) error {
	status, err := to.status(ctx)
	if err != nil {
		return err
	}
	if err := status.print(c); err != nil {
		return err
	}
	if n := len(status.Findings); n > 0 {
		return fmt.Errorf("something is wrong: %d findings", n)
	}
	return nil
}

func (s *workspaceStatus) print(c *cli.Command) error {
	switch format := c.String("output"); format {
	case outputJSON, outputYAML:
		return printDocument(os.Stdout, format, s)
	case outputTable:
		if s.Workspace == nil {
			fmt.Printf("A part of the server at %s is down, so its workspace was not checked.\n\n", printable(s.Server))
			break
		}
		fmt.Printf(
			"%s at %s: %d accounts, %d devices, %d codes, %d webhooks\n",
			named(s.Workspace.Name, s.Workspace.ID),
			printable(s.Server),
			s.Counts.Accounts,
			s.Counts.Devices,
			s.Counts.Codes,
			s.Counts.Webhooks,
		)
		if s.OK {
			fmt.Println("Nothing is wrong.")
			return nil
		}
		fmt.Println()
	}
	return listing[finding]{
		columns: []column[finding]{
			{"WHAT", func(f finding) string { return f.Kind }},
			{"WHICH", func(f finding) string { return nameOf(f.Name, f.ID) }},
			{"PROBLEM", func(f finding) string { return printable(f.Problem) }},
			{"FOR", func(f finding) string {
				if f.Since == nil {
					return ""
				}
				return formatAge(time.Since(*f.Since))
			}},
			{"MORE", func(f finding) string { return f.Next }},
		},
		id: func(f finding) string { return cmp.Or(f.ID, f.Name) },
	}.print(c, s.Findings)
}

// nameOf returns a name with the short id, if there is an id.
func nameOf(name, id string) string {
	if id == "" {
		return printable(name)
	}
	return named(name, id)
}

// status collects what is wrong in the workspace and its server.
func (o *client) status(ctx context.Context) (*workspaceStatus, error) {
	s := &workspaceStatus{Server: o.server, Findings: []finding{}}
	parts, err := o.health(ctx)
	if err != nil {
		return nil, err
	}
	if s.addServer(parts); s.down() {
		s.sort()
		return s, nil
	}
	s.Counts = &statusCounts{}
	workspace, err := api.Call[api.WorkspaceResponse](ctx, o.GetWorkspace, api.EmptyRequest{})
	if err != nil {
		return nil, err
	}
	s.Workspace = &namedObject{workspace.Workspace.WorkspaceID, workspace.Workspace.Name}
	accounts, err := api.Collect(o.ConnectedAccounts(ctx, api.ListConnectedAccountsRequest{}))
	if err != nil {
		return nil, err
	}
	s.addAccounts(accounts)
	devices, err := api.Collect(o.Devices(ctx, api.ListDevicesRequest{}))
	if err != nil {
		return nil, err
	}
	s.addDevices(devices)
	codes, err := o.codesOfAll(ctx, devices)
	if err != nil {
		return nil, err
	}
	s.addCodes(codes)
	webhooks, err := api.Collect(o.Webhooks(ctx))
	if err != nil {
		return nil, err
	}
	s.addWebhooks(webhooks)
	s.sort()
	s.OK = len(s.Findings) == 0
	return s, nil
}

// sort orders the findings, worst first.
func (s *workspaceStatus) sort() {
	slices.SortStableFunc(s.Findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), compareSince(a.Since, b.Since))
	})
}

// down reports whether a part of the server is down, so that calls of the API would fail after long retries.
func (s *workspaceStatus) down() bool {
	return slices.ContainsFunc(s.Findings, func(f finding) bool { return f.rank == findingServerDown })
}

// compareSince orders older findings first, and those of unknown age last.
func compareSince(a, b *time.Time) int {
	switch {
	case a != nil && b != nil:
		return a.Compare(*b)
	case a != nil:
		return -1
	case b != nil:
		return 1
	}
	return 0
}

func (s *workspaceStatus) addServer(parts []api.ServiceHealth) {
	for _, p := range parts {
		rank := findingServerDegraded
		switch p.Status {
		case api.Healthy:
			continue
		case api.Down:
			rank = findingServerDown
		}
		s.Findings = append(s.Findings, finding{rank: rank, Kind: "server", Name: p.Service, Problem: p.Description})
	}
}

func (s *workspaceStatus) addAccounts(accounts []api.ConnectedAccount) {
	s.Counts.Accounts = len(accounts)
	for _, a := range accounts {
		for _, p := range a.Errors {
			s.Findings = append(s.Findings, finding{
				rank:    findingAccount,
				Kind:    "account",
				ID:      a.ConnectedAccountID,
				Name:    cmp.Or(a.DisplayName, a.AccountTypeDisplayName),
				Problem: p.Message,
				Since:   knownTime(p.CreatedAt),
				Next:    "devices list --account " + a.ConnectedAccountID,
			})
		}
	}
}

func (s *workspaceStatus) addDevices(devices []api.Device) {
	s.Counts.Devices = len(devices)
	for _, d := range devices {
		f := finding{ID: d.DeviceID, Name: d.DisplayName, Next: "devices get " + d.DeviceID}
		if !d.Properties.Online {
			f.rank, f.Kind, f.Problem = findingDeviceOffline, "device", "The device is offline."
			f.Since = knownTime(offlineSince(d))
			s.Findings = append(s.Findings, f)
		}
		f.Since, f.Kind, f.Problem = nil, "battery", "The battery is at "+batteryState(d)+"."
		switch d.Properties.Battery.Status {
		case api.Critical:
			f.rank = findingBatteryCritical
		case api.Low:
			f.rank = findingBatteryLow
		default:
			continue
		}
		s.Findings = append(s.Findings, f)
	}
}

func (s *workspaceStatus) addCodes(codes []deviceCode) {
	s.Counts.Codes = len(codes)
	for _, c := range codes {
		f := finding{
			Kind: "code",
			ID:   c.id(),
			Name: c.name() + " on " + c.device.DisplayName,
			Next: "codes get " + c.id(),
		}
		problems := c.problems()
		switch {
		case len(problems) > 0:
			f.rank, f.Problem, f.Since = findingCodeError, problems[0].Message, knownTime(problems[0].CreatedAt)
		case c.overdue() && c.managed.Status == api.Removing:
			f.rank, f.Since = findingCodeOverdue, knownTime(c.since())
			f.Problem = "The device has not removed the code, which may still open the door."
		case c.overdue():
			f.rank, f.Problem, f.Since = findingCodeOverdue, "The device has not set the code.", knownTime(c.since())
		default:
			continue
		}
		s.Findings = append(s.Findings, f)
	}
}

// overdue reports whether an online device takes too long to set or remove a managed code.
func (c deviceCode) overdue() bool {
	return c.managed != nil && (c.managed.Status == api.Setting || c.managed.Status == api.Removing) &&
		c.device.Properties.Online && time.Since(c.since()) > health.OverdueAfter
}

func (s *workspaceStatus) addWebhooks(webhooks []api.Webhook) {
	s.Counts.Webhooks = len(webhooks)
	for _, w := range webhooks {
		if w.Disabled == nil || !*w.Disabled {
			continue
		}
		s.Findings = append(s.Findings, finding{
			rank:    findingWebhook,
			Kind:    "webhook",
			ID:      w.WebhookID,
			Name:    withoutQuery(w.URL),
			Problem: "Disabled: " + w.DisabledReason,
			Since:   w.DisabledAt,
			Next:    "webhooks test " + w.WebhookID,
		})
	}
}

// knownTime returns nil for a zero time.
func knownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// health returns the health of the parts of the server. It does not retry, because a server that is down says why.
func (o *client) health(ctx context.Context) ([]api.ServiceHealth, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.server+"/health", nil)
	if err != nil {
		return nil, err
	}
	resp, err := api.NewTransport(nil).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	const maxHealth = 1 << 20
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	if err != nil {
		return nil, fmt.Errorf("read the health of the server: %w", err)
	}
	var answer api.HealthResponse
	if err := json.Unmarshal(text, &answer); err != nil || answer.ServiceHealthStatuses == nil {
		return nil, fmt.Errorf(
			"%s/health answers %s, which is not the health of a Device Access server: check --server",
			o.server,
			resp.Status,
		)
	}
	return answer.ServiceHealthStatuses, nil
}
