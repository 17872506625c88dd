package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func auditCommand() *cli.Command {
	return &cli.Command{
		Name: "audit", Usage: "show who has changed what, the newest first; the server may run meanwhile",
		Description: "One line for each request and each command that has changed something. Requests that were refused, and those that\n" +
			"only read, stand in the server's log alone; what the server does by itself, and what it finds on devices, is told\n" +
			"by events. Names, PINs and secrets are not shown, but identifiers.\n\n" +
			"The outcome is done, or begun where a device has to do the rest: the action attempt among the subjects tells how\n" +
			"that ended. Where an access system has to, the pending_mutations and errors of its user tell.\n\n" +
			"Who has changed a code:  deviceaccess-server audit --subject ACCESS_CODE_ID\n" +
			"What a request has done: deviceaccess-server audit --request SEAM_REQUEST_ID\n" +
			"What a key was used for: deviceaccess-server audit --actor KEY_ID --since 24h --limit 0 --format json",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "since", Usage: "`TIME` from which on, such as 2026-01-31T12:00:00Z, or how long ago, such as 24h or 7d"},
			&cli.StringFlag{Name: "until", Usage: "`TIME` before which, written like --since"},
			&cli.StringFlag{Name: "workspace", Usage: "`ID` of a workspace"},
			&cli.StringFlag{Name: "actor", Usage: "`WHO`: the id of a credential, which finds what its client sessions have done, too, or its name, the id of a connect webview, a user of this machine, or a kind: " +
				strings.Join([]string{string(access.APIKey), string(access.PAT), string(access.ConsoleSession), string(access.EndUser), string(access.PublishableKey), access.ByPage, access.ByCommandLine}, ", ")},
			&cli.StringFlag{Name: "operation", Usage: "`WHAT`: a path of the API such as /access_codes/delete, the words of a command such as \"keys revoke\", or how they begin"},
			&cli.StringFlag{Name: "subject", Usage: "`ID` of what was changed: a code, a device, an account, a webhook, a credential, an action attempt …"},
			&cli.StringFlag{Name: "request", Usage: "`ID` of a request, as its answer has it in the header seam-request-id"},
			&cli.BoolFlag{Name: "oldest-first", Usage: "begin with the oldest"},
			&cli.IntFlag{Name: "limit", Value: 50, Usage: "show at most `NUMBER`; 0: all", Validator: notNegative[int]},
			&cli.StringFlag{Name: "format", Value: "table", Usage: "`table`, or json: one object on a line each", Validator: oneOf("table", "json")},
		}, databaseFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error {
			filter, err := auditFilter(c)
			if err != nil {
				return err
			}
			return withAdmin(ctx, c, func(a *app.Admin) error { return showAudit(ctx, c, a, filter) })
		},
	}
}

func auditFilter(c *cli.Command) (f access.AuditFilter, err error) {
	f = access.AuditFilter{Actor: c.String("actor"), Operation: c.String("operation"), OldestFirst: c.Bool("oldest-first")}
	for name, to := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := c.String(name); text != "" {
			if *to, err = moment(text, time.Now()); err != nil {
				return f, fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	for name, to := range map[string]**uuid.UUID{"workspace": &f.WorkspaceID, "subject": &f.SubjectID, "request": &f.RequestID} {
		if text := c.String(name); text != "" {
			id, err := uuid.Parse(text)
			if err != nil {
				return f, fmt.Errorf("--%s: %q is no identifier", name, text)
			}
			*to = &id
		}
	}
	return f, nil
}

// auditLine is an entry as JSON.
type auditLine struct {
	At          time.Time           `json:"at"`
	WorkspaceID *uuid.UUID          `json:"workspace_id"`
	ActorKind   string              `json:"actor_kind"`
	ActorID     *uuid.UUID          `json:"actor_id"`
	ActorName   string              `json:"actor_name"`
	RequestID   *uuid.UUID          `json:"request_id"`
	Operation   string              `json:"operation"`
	Subjects    map[string][]string `json:"subjects"`
	Outcome     string              `json:"outcome"`
}

func showAudit(ctx context.Context, c *cli.Command, a *app.Admin, f access.AuditFilter) (err error) {
	out := bufio.NewWriter(os.Stdout)
	defer func() {
		if flushed := out.Flush(); err == nil {
			err = flushed
		}
	}()
	const columns = "%-27s  %-36s  %-24s  %-44s  %-7s  %-36s  %s\n" // of fixed width: there may be more lines than fit into memory
	head := func() error {
		_, err := fmt.Fprintf(out, columns, "AT", "WORKSPACE", "ACTOR", "OPERATION", "OUTCOME", "REQUEST", "SUBJECTS")
		return err
	}
	write := func(e access.AuditEntry) error {
		who := e.ActorKind
		switch {
		case e.ActorName != "":
			who += " " + e.ActorName
		case e.ActorID != nil:
			who += " " + e.ActorID.String()
		}
		var subjects []string
		for _, s := range e.Subjects {
			subjects = append(subjects, s.Kind+"="+s.ID.String())
		}
		_, err := fmt.Fprintf(out, columns, e.At.UTC().Format("2006-01-02T15:04:05.000000Z"), shown(e.WorkspaceID), cell(who), cell(e.Operation), e.Outcome, shown(e.RequestID), strings.Join(subjects, " "))
		return err
	}
	if c.String("format") == "json" {
		lines := json.NewEncoder(out)
		head = func() error { return nil }
		write = func(e access.AuditEntry) error {
			line := auditLine{e.At.UTC(), e.WorkspaceID, e.ActorKind, e.ActorID, e.ActorName, e.RequestID, e.Operation, map[string][]string{}, e.Outcome}
			for _, s := range e.Subjects {
				line.Subjects[s.Kind] = append(line.Subjects[s.Kind], s.ID.String())
			}
			return lines.Encode(line)
		}
	}
	limit, found := c.Int("limit"), 0
	for e, err := range a.Access.Audit(ctx, f) {
		if err != nil {
			return err
		}
		if found == limit && limit > 0 {
			fmt.Fprintln(os.Stderr, "There are more; --limit 0 shows all.")
			break
		}
		if found++; found == 1 {
			if err := head(); err != nil {
				return err
			}
		}
		if err := write(e); err != nil {
			return err
		}
	}
	if found == 0 && c.String("format") == "table" {
		_, err = fmt.Fprintln(out, "No entries match.")
	}
	return err
}

func shown(id *uuid.UUID) string {
	if id == nil {
		return "-"
	}
	return id.String()
}
