package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
)

func rotateCommand() *cli.Command {
	return &cli.Command{
		Name:  "rotate-encryption",
		Usage: "re-encrypt all PINs and secrets with a new data key, also while servers run",
		Description: "A data key encrypts the secrets in the database. The database contains it, encrypted with the " +
			"master\n" +
			"key. This command creates a new data key, re-encrypts all secrets, and retires the old data keys. It\n" +
			"also replaces the key of the PIN hashes and the other keys of the server; links and addresses of before stay\n" +
			"valid for a week. If it stops early, run it again: it resumes, or starts over if the master key has changed.\n" +
			"Run it only when all servers have this version.\n\n" +
			"To change the master key:\n" +
			"  1. Give every server the new and the old key (--master-key NEW,OLD, or two lines in master.key, the new key\n" +
			"     first), and restart it.\n" +
			"  2. Run this command.\n" +
			"  3. Remove the old key from every server. Keep it elsewhere as long as you keep dumps, or backups made with\n" +
			"     --without-key, from before the change: they cannot be read without it.",
		Flags: databaseFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			return withAdmin(ctx, c, func(a *app.Admin) error {
				p := &rotationProgress{out: os.Stderr}
				if err := a.Access.ServerKeys.RotateEncryption(ctx, p.print); err != nil {
					return err
				}
				fmt.Printf("Done: re-encrypted %d secrets with a new key.\n", p.rows)
				return nil
			})
		},
	}
}

// rotationProgress prints the progress of a rotation, at most once a second for each column.
type rotationProgress struct {
	out    io.Writer
	column string
	done   int64
	rows   int64
	shown  time.Time
}

func (p *rotationProgress) print(r keyrotation.Rotation) {
	switch {
	case r.Resumed:
		fmt.Fprintln(p.out, "Resuming an unfinished rotation.")
		return
	case r.Waiting > 0:
		fmt.Fprintf(p.out, "Waiting for %d transactions that may still write secrets with an old key.\n", r.Waiting)
		return
	case r.Column == "":
		return
	}
	first := r.Column != p.column || r.Done < p.done // the first report of a column, or of a second pass over it
	if first {
		p.column, p.done = r.Column, 0
	}
	more := r.Done - p.done // 0 if all rows have the new key already
	p.rows += more
	p.done = r.Done
	if first || (more > 0 && (r.Done >= r.Total || time.Since(p.shown) > time.Second)) {
		p.shown = time.Now()
		fmt.Fprintf(p.out, "%-36s %d of %d\n", r.Column, r.Done, r.Total)
	}
}
