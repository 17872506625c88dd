package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v3"
)

// Patterns of the errors that package cli returns for flags.
var (
	wrongValue    = regexp.MustCompile(`(?s)^invalid value ".*" for flag -([a-z-]+): (.*)$`)
	wrongVariable = regexp.MustCompile(
		`(?s)^could not parse ".*" as \S+ value from environment variable "(\w+)" for flag ([a-z-]+): (.*)$`,
	)
	unknownFlag  = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	noValue      = regexp.MustCompile(`^flag needs an argument: -*(.*)$`)
	missingFlags = regexp.MustCompile(`^Required flags? "(.*)" not set$`)
	notParsed    = regexp.MustCompile(`^strconv\.Parse(\w+): parsing (".*"): (.*)$`)
)

// usageError rewrites a flag error of package cli and adds the help command.
func usageError(c *cli.Command, err error) error {
	says, text := err.Error(), err.Error()
	if m := wrongValue.FindStringSubmatch(text); m != nil {
		says = fmt.Sprintf("--%s: %s", m[1], parseReason(m[2]))
	} else if m := unknownFlag.FindStringSubmatch(text); m != nil {
		says = "unknown flag --" + m[1]
	} else if m := noValue.FindStringSubmatch(text); m != nil {
		says = fmt.Sprintf("--%s needs a value", m[1])
	} else if m := missingFlags.FindStringSubmatch(text); m != nil {
		says = "missing required flag: --" + strings.ReplaceAll(m[1], ", ", ", --")
	}
	return usagef("%s; run %s --help for the flags", says, c.FullName())
}

// variableError rewrites the error of package cli for an environment variable. It returns other text unchanged.
func variableError(text string) string {
	if m := wrongVariable.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s (--%s): %s", m[1], m[2], parseReason(m[3]))
	}
	return text
}

// parseReason rewrites the reason why a value cannot be parsed.
func parseReason(why string) string {
	m := notParsed.FindStringSubmatch(why)
	switch {
	case why == "parse error":
		return "must be true or false"
	case m == nil:
		return why
	case m[3] == "value out of range":
		return m[2] + " is too large or too small"
	case m[1] == "Float":
		return m[2] + " is not a number"
	}
	return m[2] + " is not a whole number"
}
