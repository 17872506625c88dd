package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/registry"
)

// connectable returns the vendors that commands can connect.
func connectable() []adapter.Vendor {
	return slices.DeleteFunc(registry.All(), func(v adapter.Vendor) bool { return v.Usage == "" })
}

// usageOf returns the help of the command that connects a vendor.
func usageOf(v adapter.Vendor) string {
	if v.NeedsClient {
		return v.Usage + " (needs --vendor-client)"
	}
	return v.Usage
}

// flagsOf returns the flags of a vendor's settings. With connect, required flags are marked and defaults are set.
func flagsOf(v adapter.Vendor, connect bool) (flags []cli.Flag) {
	for _, s := range v.Settings {
		f := &cli.StringFlag{Name: flagOf(s), Usage: s.Usage, Required: connect && s.Required}
		if connect {
			f.Value = s.Default
		}
		if s.Kind == adapter.SecretSetting {
			f.Usage = fmt.Sprintf(
				"read the %s from `FILE`, or from standard input if it is - (default: the variable %s)",
				s.Usage,
				variableOf(s),
			)
		}
		flags = append(flags, f)
	}
	return flags
}

// flagOf returns the name of the flag of a setting.
func flagOf(s adapter.Setting) string {
	if s.Kind == adapter.SecretSetting {
		return s.Name + "-file"
	}
	return s.Name
}

// variableOf returns the variable of a secret. It is not a flag: other users can see a process's flags.
func variableOf(s adapter.Setting) string {
	return "DEVICEACCESS_GATEWAY_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// hasSetting reports whether a flag or variable of the vendor's settings is set.
func hasSetting(c *cli.Command, v adapter.Vendor) bool {
	return slices.ContainsFunc(v.Settings, func(s adapter.Setting) bool {
		_, set := os.LookupEnv(variableOf(s))
		return c.IsSet(flagOf(s)) || set && s.Kind == adapter.SecretSetting
	})
}

// readSettings returns the settings that are set. With connect, settings with a default are always set.
func readSettings(ctx context.Context, c *cli.Command, v adapter.Vendor, connect bool) (adapter.Settings, error) {
	set := adapter.Settings{}
	for _, s := range v.Settings {
		flag := flagOf(s)
		switch {
		case !c.IsSet(flag) && s.Kind == adapter.SecretSetting:
			if value, ok := os.LookupEnv(variableOf(s)); ok {
				set[s.Name] = value
			}
		case !c.IsSet(flag):
			if connect && s.Default != "" {
				set[s.Name] = s.Default
			}
		case s.Kind == adapter.TextSetting, s.Kind == adapter.FileSetting && c.String(flag) == "":
			set[s.Name] = c.String(flag)
		default:
			b, err := readFile(ctx, c.String(flag))
			if err != nil {
				return nil, fmt.Errorf("--%s: %w", flag, err)
			}
			set[s.Name] = string(b)
			if s.Kind == adapter.SecretSetting {
				set[s.Name] = strings.TrimRight(string(b), "\r\n")
			}
		}
	}
	return set, nil
}

func readFile(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin(ctx))
	}
	return os.ReadFile(file) //nolint:gosec // the operator names the file
}
