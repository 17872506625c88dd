package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v3"
)

// What the library says of flags, which is told in one line of our own.
var (
	wrongValue    = regexp.MustCompile(`(?s)^invalid value ".*" for flag -([a-z-]+): (.*)$`)
	wrongVariable = regexp.MustCompile(`(?s)^could not parse ".*" as \S+ value from environment variable "(\w+)" for flag ([a-z-]+): (.*)$`)
	unknownFlag   = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	noValue       = regexp.MustCompile(`^flag needs an argument: -*(.*)$`)
	missingFlags  = regexp.MustCompile(`^Required flags? "(.*)" not set$`)
	notParsed     = regexp.MustCompile(`^strconv\.Parse(\w+): parsing (".*"): (.*)$`)
)

// usageError is what is wrong with the flags of a command, and how to see which there are.
func usageError(c *cli.Command, err error) error {
	says, text := err.Error(), err.Error()
	if m := wrongValue.FindStringSubmatch(text); m != nil {
		says = fmt.Sprintf("--%s: %s", m[1], plainly(m[2]))
	} else if m := unknownFlag.FindStringSubmatch(text); m != nil {
		says = "there is no flag --" + m[1]
	} else if m := noValue.FindStringSubmatch(text); m != nil {
		says = fmt.Sprintf("--%s needs a value", m[1])
	} else if m := missingFlags.FindStringSubmatch(text); m != nil {
		says = "missing: --" + strings.ReplaceAll(m[1], ", ", ", --")
	}
	return errors.New(says + "; " + c.FullName() + " --help shows the flags")
}

// ofVariable is what the library says of a variable, of which it tells no command, in words of our own; anything else as it is.
func ofVariable(text string) string {
	if m := wrongVariable.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s (--%s): %s", m[1], m[2], plainly(m[3]))
	}
	return text
}

// plainly says for people why a value is none.
func plainly(why string) string {
	m := notParsed.FindStringSubmatch(why)
	switch {
	case why == "parse error":
		return "give true or false"
	case m == nil:
		return why
	case m[3] == "value out of range":
		return m[2] + " is too large or too small"
	case m[1] == "Float":
		return m[2] + " is no number"
	}
	return m[2] + " is no whole number"
}
