package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

func auditCommand() *cli.Command {
	return &cli.Command{
		Name:  "audit",
		Usage: "show the audit log, newest entries first, also while the server runs",
		Description: "The audit log has one entry per request and per command that changed something. Rejected and\n" +
			"read-only requests are only in the server's log. Events report what the server does on its own and\n" +
			"what it finds on devices. Entries have identifiers, but no names, PINs, or secrets.\n\n" +
			"The outcome is \"done\", or \"pending\" if a device still has to act. The action attempt among the\n" +
			"subjects then has the result. For access systems, the pending_mutations and errors of the user have\n" +
			"it.\n\n" +
			"Who changed a code:       deviceaccess-server audit --subject ACCESS_CODE_ID\n" +
			"What a request changed:   deviceaccess-server audit --request SEAM_REQUEST_ID\n" +
			"What a key was used for:  deviceaccess-server audit --actor KEY_ID --since 24h --limit 0 --output json\n\n" +
			"JSON has one object per line, YAML one document per entry, and id prints the ids of the entries.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name:  "since",
				Usage: "show entries from `TIME` on: a time such as 2026-01-31T12:00:00Z, or an age such as 24h or 7d",
			},
			&cli.StringFlag{Name: "until", Usage: "show entries before `TIME`, in the format of --since"},
			&cli.StringFlag{Name: "workspace", Usage: "show entries of the workspace `ID`"},
			&cli.StringFlag{
				Name: "actor",
				Usage: "show entries of `ACTOR`: the id (with its client sessions) or name of a credential, the id of a " +
					"connect webview, a user of this machine, or one of " +
					strings.Join(
						[]string{
							string(domain.APIKey),
							string(domain.PAT),
							string(domain.ConsoleSession),
							string(domain.EndUser),
							string(domain.PublishableKey),
							string(domain.OperatorAccount),
							audit.ByPage,
							audit.ByCommandLine,
						},
						", ",
					),
			},
			&cli.StringFlag{
				Name: "operation",
				Usage: "show entries whose operation starts with `TEXT`: an API path such as /access_codes/delete, or a " +
					"command such as \"keys revoke\"",
			},
			&cli.StringFlag{
				Name: "subject",
				Usage: "show entries that changed the object `ID`, such as a code, device, account, webhook, credential, or " +
					"action attempt",
			},
			&cli.StringFlag{
				Name:  "request",
				Usage: "show entries of the request `ID`, from the response header seam-request-id",
			},
			&cli.BoolFlag{Name: "oldest-first", Usage: "show the oldest entries first"},
			&cli.IntFlag{
				Name:      "limit",
				Value:     50,
				Usage:     "show at most `NUMBER` entries; 0 shows all",
				Validator: notNegative[int],
			},
		}, append(outputFlags(), databaseFlags()...)...),
		Action: func(ctx context.Context, c *cli.Command) error {
			filter, err := auditFilter(c)
			if err != nil {
				return err
			}
			return withAdmin(ctx, c, func(a *app.Admin) error { return showAudit(ctx, c, a, filter) })
		},
	}
}

func auditFilter(c *cli.Command) (f audit.Filter, err error) {
	f = audit.Filter{
		Actor:       c.String("actor"),
		Operation:   c.String("operation"),
		OldestFirst: c.Bool("oldest-first"),
	}
	for name, to := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := c.String(name); text != "" {
			if *to, err = parseTime(text, time.Now()); err != nil {
				return f, usagef("--%s: %w", name, err)
			}
		}
	}
	ids := map[string]**uuid.UUID{"workspace": &f.WorkspaceID, "subject": &f.SubjectID, "request": &f.RequestID}
	for name, to := range ids {
		if text := c.String(name); text != "" {
			id, err := uuid.Parse(text)
			if err != nil {
				return f, usagef("--%s: %q is not an id", name, text)
			}
			*to = &id
		}
	}
	return f, nil
}

// auditLine is what JSON and YAML show of an audit entry.
type auditLine struct {
	ID          uuid.UUID           `json:"audit_id"`
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

func toAuditLine(e audit.Entry) auditLine {
	line := auditLine{
		ID:          e.ID,
		At:          e.At.UTC(),
		WorkspaceID: e.WorkspaceID,
		ActorKind:   e.ActorKind,
		ActorID:     e.ActorID,
		ActorName:   e.ActorName,
		RequestID:   e.RequestID,
		Operation:   e.Operation,
		Subjects:    map[string][]string{},
		Outcome:     e.Outcome,
	}
	for _, s := range e.Subjects {
		line.Subjects[s.Kind] = append(line.Subjects[s.Kind], s.ID.String())
	}
	return line
}

// auditColumns are the columns of the table. They have a fixed width, since a table of all entries may not fit into
// memory.
const auditColumns = "%-20s  %-32s  %-32s  %-36s  %-7s  %-36s  %s\n"

// auditWriter returns a function that writes entries in the format of --output, and a header before the first one.
func auditWriter(c *cli.Command, out io.Writer, workspaces map[uuid.UUID]string) func(audit.Entry) error {
	switch c.String("output") {
	case outputID:
		return func(e audit.Entry) error {
			_, err := fmt.Fprintln(out, e.ID)
			return err
		}
	case outputJSON:
		lines := json.NewEncoder(out)
		return func(e audit.Entry) error { return lines.Encode(toAuditLine(e)) }
	case outputYAML:
		return func(e audit.Entry) error {
			if _, err := fmt.Fprintln(out, "---"); err != nil {
				return err
			}
			return printDocument(out, outputYAML, toAuditLine(e))
		}
	}
	headed := c.Bool("no-headers")
	return func(e audit.Entry) error {
		if !headed {
			headed = true
			_, err := fmt.Fprintf(
				out,
				auditColumns,
				"AT",
				"WORKSPACE",
				"ACTOR",
				"OPERATION",
				"OUTCOME",
				"REQUEST",
				"SUBJECTS",
			)
			if err != nil {
				return err
			}
		}
		return writeAuditRow(out, e, workspaces)
	}
}

func writeAuditRow(out io.Writer, e audit.Entry, workspaces map[uuid.UUID]string) error {
	who := e.ActorKind
	switch {
	case e.ActorName != "":
		who += " " + e.ActorName
	case e.ActorID != nil:
		who += " " + e.ActorID.String()
	}
	workspace := "-"
	if e.WorkspaceID != nil {
		workspace = named(workspaces[*e.WorkspaceID], e.WorkspaceID.String())
	}
	subjects := make([]string, len(e.Subjects))
	for i, s := range e.Subjects {
		subjects[i] = s.Kind + "=" + s.ID.String()
	}
	_, err := fmt.Fprintf(
		out,
		auditColumns,
		formatTime(e.At),
		workspace,
		printable(who),
		printable(e.Operation),
		e.Outcome,
		shown(e.RequestID),
		strings.Join(subjects, " "),
	)
	return err
}

func showAudit(ctx context.Context, c *cli.Command, a *app.Admin, f audit.Filter) (err error) {
	workspaces, err := workspaceNames(ctx, a)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	defer func() {
		if flushed := out.Flush(); err == nil {
			err = flushed
		}
	}()
	write := auditWriter(c, out, workspaces)
	limit, found := c.Int("limit"), 0
	for e, err := range a.Access.Audit.Audit(ctx, f) {
		if err != nil {
			return err
		}
		if found == limit && limit > 0 {
			fmt.Fprintln(os.Stderr, "There are more; --limit 0 shows all.")
			break
		}
		found++
		if err := write(e); err != nil {
			return err
		}
	}
	if found == 0 && c.String("output") == outputTable {
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
