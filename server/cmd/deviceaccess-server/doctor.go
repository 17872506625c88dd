package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "check an installation, and print what to do about what is wrong",
		Description: "It checks what `serve --check-config` checks, and that a server answers on this machine and at --public-url,\n" +
			"that the disk has space, that the last backup is recent, and that the clocks agree. It changes nothing.\n\n" +
			"Give it the flags, variables, and configuration file of the server.",
		Flags:  append(outputFlags(), doctorFlags()...),
		Action: doctor,
	}
}

// doctorFlags returns the flags of serve that are settings.
func doctorFlags() []cli.Flag {
	return slices.DeleteFunc(serveCommand().Flags, func(f cli.Flag) bool {
		return len(variablesOf(f)) == 0 && f.Names()[0] != "quiet"
	})
}

// checkRecord is what JSON and YAML show of a check.
type checkRecord struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Result string `json:"result"`
}

func doctor(ctx context.Context, c *cli.Command) error {
	config, err := serverConfig(c)
	if err != nil {
		return err
	}
	results := append(checkSettings(ctx, c, config), app.Diagnose(ctx, config)...)
	records, failed := make([]checkRecord, len(results)), 0
	for i, r := range results {
		records[i] = checkRecord{r.Name, r.Err == nil, r.Detail}
		if r.Err != nil {
			records[i].Result = r.Err.Error()
			failed++
		}
	}
	l := listing[checkRecord]{
		columns: []column[checkRecord]{
			{"STATE", func(r checkRecord) string {
				if r.OK {
					return "ok"
				}
				return "FAILED"
			}},
			{"CHECK", func(r checkRecord) string { return r.Check }},
			{"RESULT", func(r checkRecord) string { return printable(r.Result) }},
		},
		id: func(r checkRecord) string { return r.Check },
	}
	if err := l.print(c, records); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(results))
	}
	return nil
}
