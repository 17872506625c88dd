package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/pglocal"
)

func backupCommand() *cli.Command {
	return &cli.Command{
		Name: "backup", Usage: "write all that is in the data directory to one file; the server may run meanwhile", ArgsUsage: "FILE",
		Description: "The file holds the private database, the simulated locks and the master key. Whoever has it can read every PIN\n" +
			"and secret: it is made readable by its owner only, and has to be kept like the data directory itself. With\n" +
			"--without-key, or when the key is not kept in the data directory (--master-key), PINs and secrets in the file are\n" +
			"sealed, and it is of no use without the key, which then has to be kept elsewhere.\n\n" +
			"FILE must not be there yet. - is standard output, such as to encrypt it on the way.\n\n" +
			"For a database given by --database-url, use pg_dump.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "without-key", Usage: "leave the master key out, which is then to be kept elsewhere"},
		}, databaseFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error {
			path := c.Args().First()
			if path == "" {
				return fmt.Errorf("name the FILE to write, or - for standard output")
			}
			var m backup.Manifest
			write := func(to io.Writer) (err error) {
				m, err = app.Backup(ctx, database(c), to, c.Bool("without-key"), version, logger(c))
				return err
			}
			if path == "-" {
				if err := write(os.Stdout); err != nil {
					return noSpace(err, "what has been written is no backup")
				}
				tellBackup(os.Stderr, "standard output", m)
				return nil
			}
			if err := writeNew(path, write); err != nil {
				return noSpace(err, removed)
			}
			tellBackup(os.Stdout, path, m)
			return nil
		},
	}
}

const removed = "what was begun has been removed"

// noSpace says what to do when a disk is full, and what is on it now.
func noSpace(err error, left string) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk is full, and %s: make room, or choose another place: %w", left, err)
	}
	return err
}

func tellBackup(out io.Writer, path string, m backup.Manifest) {
	fmt.Fprintf(out, "Backed up to %s: PostgreSQL %s, schema %d.\n", path, m.Postgres, m.Schema)
	if m.KeyIncluded {
		fmt.Fprintln(out, "The master key is in it: whoever has the file can read every PIN and secret.")
		return
	}
	fmt.Fprintln(out, "The master key is not in it: without the key its PINs and secrets cannot be read. Keep the key apart from it, and do keep it.")
}

func restoreCommand() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "put a data directory together from a file that backup has written", ArgsUsage: "FILE",
		Description: "Nothing is overwritten: the data directory must not be there, or have no postgres in it. The file is checked, the\n" +
			"database started once to prove that it recovers and that the master key opens it, and only then all is put in\n" +
			"its place. Stopped or killed before that, nothing has changed, and it can be started again.\n\n" +
			"- is standard input. A backup without its master key needs it, by --master-key or as master.key in the data\n" +
			"directory.\n\n" +
			"The next serve brings locks and access systems to what the backup says: codes of later than the backup are found as\n" +
			"unmanaged ones, codes that were deleted or changed since are set as they were, people who were suspended are let in.\n" +
			"What was ended since, as keys, client sessions and webhooks, is there again. The command says how to find it.\n\n" +
			"Restore only a file that you trust: whoever has made it can have this machine do anything that the user can who\n" +
			"runs the database, already while it is checked.",
		Flags: databaseFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			path := c.Args().First()
			if path == "" {
				return fmt.Errorf("name the FILE to restore, or - for standard input")
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
				return noSpace(err, removed)
			}
			return tellRestore(os.Stdout, c.String("data-dir"), m)
		},
	}
}

func tellRestore(out io.Writer, dir string, m backup.Manifest) error {
	fmt.Fprintf(out, "Restored to %s what was backed up at %s.\n", dir, m.CreatedAt.Format("2006-01-02 15:04:05 MST"))
	fmt.Fprintln(out, "All is as it was then: what was taken from somebody since is given back once the server runs. Codes that were deleted or given another PIN\n"+
		"are as they were then, also on locks; so are people whom an access system had suspended, API keys that were revoked, client sessions,\n"+
		"accounts that were disconnected and webhooks that were deleted. Before you start the server, ask the database that is replaced, if it can\n"+
		"still be read, what was done since; BEFORE is where you have moved it:")
	fmt.Fprintf(out, "\n  deviceaccess-server audit --data-dir BEFORE --since %s --limit 0\n\n", m.CreatedAt.UTC().Format(time.RFC3339))
	fmt.Fprintln(out, "If the backup was made by an older version, migrate comes first. Then end again what can be ended before the start: keys revoke,\n"+
		"accounts disconnect. Webhooks sign with their secrets of then: receivers that know only a newer one refuse everything, and one that was\n"+
		"replaced because it had leaked signs again. Give each of those a new one with webhooks rotate-secret, and with --overlap 0 where the old\n"+
		"one has leaked. The guide \"Backup, restore and upgrade of the server\" says what is left to do by the API, right after the start.")
	owner, err := pglocal.OwnerOf(dir)
	switch {
	case err != nil:
		return err
	case owner.Name() != "":
		fmt.Fprintf(out, "It belongs to user %s, who runs the server.\n", owner.Name())
	case os.Geteuid() == 0:
		fmt.Fprintf(out, "It belongs to root, and the database to whom root runs it as. If another user is to run the server, give that user all of it: chown -R USER: %s\n", dir)
	}
	return nil
}

// counted shows how much has been read, once anything is.
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
