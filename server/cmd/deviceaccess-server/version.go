package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the versions of the program, its source, Go, and the database schema",
		Action: func(context.Context, *cli.Command) error {
			info, _ := debug.ReadBuildInfo()
			return printVersion(os.Stdout, info)
		},
	}
}

// printVersion prints the versions of the program. info may be nil.
func printVersion(out io.Writer, info *debug.BuildInfo) error {
	recorded, modified := "unknown", ""
	if info != nil {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				recorded = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = ", modified"
			}
		}
	}
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "version\t%s\ncommit\t%s\n", version, cmp.Or(commit, recorded+modified))
	fmt.Fprintf(t, "go\t%s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(t, "schema\t%d\n", store.NewestSchema())
	return t.Flush()
}
