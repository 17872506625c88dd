package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

func restoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "restore",
		Usage:     "restore a data directory from a backup file",
		ArgsUsage: "FILE",
		Description: "The data directory must not exist, or must have no postgres directory: restore overwrites nothing.\n" +
			"It checks the file, starts the database to verify that it recovers and that the master key opens it,\n" +
			"and then moves the files to their place. A restore that stops before the last step changes nothing.\n" +
			"You can start it again.\n\n" +
			"- reads standard input. For a backup without its master key, set --master-key or put the key into\n" +
			"master.key in the data directory.\n\n" +
			"The next serve brings locks and access systems to the state of the backup. Codes that are newer than\n" +
			"the backup become unmanaged. Codes that were deleted or changed later are set again. Suspended\n" +
			"people can enter again. Revoked keys, client sessions, and webhooks are valid again. The command\n" +
			"prints how to find these changes.\n\n" +
			"Restore only files that you trust: a malicious file can run commands as the user of the database,\n" +
			"even during the check.",
		Flags: databaseFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			path := c.Args().First()
			if path == "" {
				return usagef("missing argument: the FILE to restore, or - for standard input")
			}
			var from io.Reader
			if path == "-" {
				from = stdin(ctx)
			} else {
				f, err := os.Open(path)
				if err != nil {
					return fmt.Errorf("read the backup: %w", err)
				}
				defer f.Close()
				st, err := f.Stat()
				if err != nil {
					return fmt.Errorf("read the backup: %w", err)
				}
				reading := &counted{Reader: f, size: st.Size()}
				defer reading.end()
				from = reading
			}
			m, err := app.Restore(ctx, database(c), from, logger(c))
			if err != nil {
				return noSpace(err, filesRemoved)
			}
			return printRestore(os.Stdout, c.String("data-dir"), m)
		},
	}
}

func printRestore(out io.Writer, dir string, m backup.Manifest) error {
	fmt.Fprintf(out, "Restored %s from the backup of %s.\n", dir, m.CreatedAt.Format("2006-01-02 15:04:05 MST"))
	fmt.Fprintln(
		out,
		"The data is in the state of the backup. Once the server runs, it undoes later changes, also on locks:\n"+
			"deleted and changed codes, people suspended in access systems, revoked API keys, client sessions,\n"+
			"disconnected accounts, and deleted webhooks.\n\n"+
			"Before you start the server, list these changes from the replaced database, if it can still be read.\n"+
			"BEFORE is its directory:",
	)
	fmt.Fprintf(
		out,
		"\n  deviceaccess-server audit --data-dir BEFORE --since %s --limit 0\n\n",
		m.CreatedAt.UTC().Format(time.RFC3339),
	)
	fmt.Fprintln(
		out,
		"For a backup of an older version, run migrate first. Then repeat what needs no running server:\n"+
			"keys revoke and accounts disconnect.\n\n"+
			"Webhooks sign with the secrets of the backup. Receivers that only know a newer secret reject every\n"+
			"event, and a leaked secret is valid again. Give these webhooks a new secret with\n"+
			"webhooks rotate-secret; use --overlap 0 for a leaked secret.\n\n"+
			"The guide \"Backup, restore and upgrade of the server\" lists what to do through the API after the start.",
	)
	owner, err := pglocal.OwnerOf(dir)
	switch {
	case err != nil:
		return err
	case owner.Name() != "":
		fmt.Fprintf(out, "The directory belongs to user %s. Run the server as this user.\n", owner.Name())
	case os.Geteuid() == 0:
		fmt.Fprintf(
			out,
			"The directory belongs to root, and the database to the user that root runs it as.\n"+
				"To run the server as another user: chown -R USER: %s\n",
			dir,
		)
	}
	return nil
}

// counted shows a progress bar from the first read on.
type counted struct {
	io.Reader
	size int64
	bar  *pglocal.ProgressBar
}

func (c *counted) Read(p []byte) (int, error) {
	if c.bar == nil {
		c.bar = pglocal.NewProgressBar(os.Stderr, "Reading the backup", c.size)
	}
	n, err := c.Reader.Read(p)
	c.bar.Add(n)
	return n, err //nolint:wrapcheck // io.EOF is the end
}

func (c *counted) end() {
	if c.bar != nil {
		c.bar.End()
	}
}
