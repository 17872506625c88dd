package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/backup"
)

func backupCommand() *cli.Command {
	return &cli.Command{
		Name:      "backup",
		Usage:     "write the data directory to one file, also while the server runs",
		ArgsUsage: "FILE",
		Description: "The file contains the private database, the simulated locks, and the master key. It gives access to\n" +
			"every PIN and secret, so protect it like the data directory. Only its owner can read it.\n\n" +
			"With --without-key, or if the key is not in the data directory (--master-key), the file has no\n" +
			"master key. Its PINs and secrets are then encrypted. Keep the key elsewhere: the file is useless\n" +
			"without it.\n\n" +
			"FILE must not exist. - writes to standard output, for example to encrypt the backup.\n\n" +
			"The command records when the backup ended, for the metrics. To record only backups that you verified,\n" +
			"use --no-record, verify the file with `restore --data-dir DIR FILE`, and run `backup --record`.\n\n" +
			"To back up a database of --database-url, use pg_dump.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "without-key", Usage: "leave out the master key; keep it elsewhere"},
			&cli.BoolFlag{Name: "no-record", Usage: "do not record when the backup ended"},
			&cli.BoolFlag{Name: "record", Usage: "write no backup; record that one was verified now"},
		}, databaseFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error {
			path := c.Args().First()
			if c.Bool("record") {
				if path != "" || c.Bool("no-record") || c.Bool("without-key") {
					return usagef("--record writes no backup: omit FILE and other flags of backup")
				}
				return app.RecordBackup(ctx, database(c), logger(c))
			}
			if path == "" {
				return usagef("missing argument: the FILE to write, or - for standard output")
			}
			var m backup.Manifest
			write := func(to io.Writer) (err error) {
				m, err = app.Backup(ctx, database(c), to, c.Bool("without-key"), version, logger(c))
				return err
			}
			if path == "-" {
				if err := write(os.Stdout); err != nil {
					return noSpace(err, "the output is incomplete")
				}
				printBackup(os.Stderr, "standard output", m)
				recordBackup(ctx, c)
				return nil
			}
			if err := writeNewFile(path, write); err != nil {
				return noSpace(err, filesRemoved)
			}
			printBackup(os.Stdout, path, m)
			recordBackup(ctx, c)
			return nil
		},
	}
}

// recordBackup records the time of a complete backup for the metrics, unless a flag prevents it. A failure doesn't fail
// the backup.
func recordBackup(ctx context.Context, c *cli.Command) {
	if c.Bool("no-record") {
		return
	}
	if err := app.RecordBackup(ctx, database(c), logger(c)); err != nil {
		logger(c).Warn(
			"the backup is complete, but its time could not be recorded; the metrics show the one before",
			"error", err,
		)
	}
}

// filesRemoved describes the disk after a failed backup or restore.
const filesRemoved = "the incomplete files were removed"

// noSpace adds the next step to the error of a full disk. left describes what is on the disk.
func noSpace(err error, left string) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk is full and %s: free space or choose another place: %w", left, err)
	}
	return err
}

func printBackup(out io.Writer, path string, m backup.Manifest) {
	fmt.Fprintf(out, "Backed up to %s: PostgreSQL %s, schema %d.\n", path, m.Postgres, m.Schema)
	if m.KeyIncluded {
		fmt.Fprintln(out, "The backup contains the master key: the file gives access to every PIN and secret.")
		return
	}
	fmt.Fprintln(
		out,
		"The backup does not contain the master key: without the key its PINs and secrets cannot be read. Keep the key "+
			"in another place.",
	)
}
