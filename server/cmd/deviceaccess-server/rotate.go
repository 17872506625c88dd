package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func rotateCommand() *cli.Command {
	return &cli.Command{
		Name: "rotate-encryption", Usage: "seal all PINs and secrets anew with a new key; servers go on serving meanwhile",
		Description: "Secrets in the database are sealed with a data key, which is kept there, wrapped by the master key. This makes a new\n" +
			"data key, seals with it what others have sealed, and retires those. Stopped in the middle, it goes on where it was\n" +
			"when it is started again, or begins anew with another key where the master key has changed since.\n\n" +
			"To change the master key, give every server the new and the old one (--master-key NEW,OLD, or two lines in\n" +
			"master.key, the new one first), restart them, run this, and take the old one away from them. Keep it elsewhere as\n" +
			"long as there are dumps, or backups made --without-key, of before: without it nobody can read those.",
		Flags: databaseFlags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			return withAdmin(ctx, c, func(a *app.Admin) error {
				p := &rotationProgress{out: os.Stderr}
				if err := a.Access.RotateEncryption(ctx, p.tell); err != nil {
					return err
				}
				fmt.Printf("Done: %d secrets are sealed with a new key.\n", p.rows)
				return nil
			})
		},
	}
}

// rotationProgress tells a person how far a rotation is, at most once a second for each column.
type rotationProgress struct {
	out    io.Writer
	column string
	done   int64
	rows   int64
	told   time.Time
}

func (p *rotationProgress) tell(r access.Rotation) {
	switch {
	case r.Resumed:
		fmt.Fprintln(p.out, "Going on with a rotation that had not come to its end.")
		return
	case r.Waiting > 0:
		fmt.Fprintf(p.out, "Waiting for %d transactions in the database to end, which may write back what they have read before.\n", r.Waiting)
		return
	case r.Column == "":
		return
	}
	again := r.Column != p.column || r.Done < p.done // another column, or the same once more
	if again {
		p.column, p.done = r.Column, 0
	}
	more := r.Done - p.done // none where a table has only what is sealed anew already, as the rows just written
	p.rows += more
	p.done = r.Done
	if again || (more > 0 && (r.Done >= r.Total || time.Since(p.told) > time.Second)) {
		p.told = time.Now()
		fmt.Fprintf(p.out, "%-36s %d of %d\n", r.Column, r.Done, r.Total)
	}
}
