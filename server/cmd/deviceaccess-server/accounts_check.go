package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/recording"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "read an account at its vendor, and print what works and what to do about the rest",
		ArgsUsage: "ID",
		Description: "The command writes to no device and creates no subscription, also while a server runs. Its calls count\n" +
			"against the vendor's limit. It fails if a line fails.\n\n" +
			"A recording has the keys, types, and lengths of the vendor's answers, without names, PINs, and\n" +
			"identifiers. Look at it before you send it to others.",
		Flags: append([]cli.Flag{
			&cli.IntFlag{
				Name:  "devices",
				Value: 20,
				Usage: "read the codes of at most `NUMBER` devices",
			},
			&cli.StringFlag{
				Name:  "record",
				Usage: "write the redacted answers of the vendor to the new directory `DIR`; for vendors over HTTP",
			},
			allowGatewayFlag(),
		}, append(vendorClientFlags(), databaseFlags()...)...),
		Action: onAccount(checkAccount),
	}
}

func checkAccount(ctx context.Context, c *cli.Command, a *app.Admin, account app.ConnectedAccount) (err error) {
	if c.Int("devices") < 1 {
		return errors.New("--devices must be at least 1")
	}
	if a.Connecting.Clients, err = vendorClients(c); err != nil {
		return err
	}
	if a.Connecting.AllowPrefixes, err = prefixes(
		"allow-gateway-prefix",
		c.StringSlice("allow-gateway-prefix"),
	); err != nil {
		return err
	}
	o := app.CheckOptions{Devices: c.Int("devices")}
	var recorder *recording.Recorder
	if c.IsSet("record") {
		if recorder, err = newRecorder(c.String("record"), account); err != nil {
			return err
		}
		o.Transport = recorder.Wrap
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	failed := 0
	o.Report = func(line app.CheckLine) {
		if line.Status == app.CheckFailed {
			failed++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", line.Status, printable(line.Subject), printable(line.Result))
	}
	if err := errors.Join(a.Check(ctx, account, o), t.Flush()); err != nil {
		return err
	}
	if recorder != nil {
		if err := reportRecording(recorder, c.String("record")); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("account %s does not work: see the failed lines", account.ID)
	}
	return nil
}

// newRecorder returns a recorder, unless the account is reached in another way than HTTP.
func newRecorder(dir string, account app.ConnectedAccount) (*recording.Recorder, error) {
	if _, gateway := account.Connection.(adapter.Stranger); gateway {
		return nil, fmt.Errorf("--record: recording is not supported for %s, which is not reached over HTTP; "+
			"run the check without --record", account.Adapter)
	}
	r, err := recording.New(dir)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	return r, nil
}

func reportRecording(r *recording.Recorder, dir string) error {
	files, err := r.Finish()
	switch {
	case err != nil:
		return fmt.Errorf("--record: %w", err)
	case files == 0:
		return errors.New("--record: nothing was recorded, because the vendor received no request")
	}
	fmt.Fprintf(os.Stderr, "Recorded %d requests in %s.\n", files, printable(dir))
	return nil
}
