package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	yaml "github.com/oasdiff/yaml3"
	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app"
)

// A setting comes from the first of these sources that has it: the flag, the environment variable, the configuration
// file, and for secrets a systemd credential. Package cli reads the first two.

// defaultConfig is the configuration file of a server that names no other.
const defaultConfig = "/etc/deviceaccess/config.yaml"

// secretFlags are the flags whose values are secrets. Each has a second flag NAME-file, and is also the name of a
// systemd credential.
var secretFlags = []string{"database-url", "master-key", "admin-password", "oidc-client-secret"}

// maxSettingsFile is the maximum size in bytes of a configuration file and of a file with a secret.
const maxSettingsFile = 1 << 20

// configFlag returns the flag of the configuration file.
func configFlag() cli.Flag {
	return &cli.StringFlag{
		Name:     "config",
		Sources:  env("DEVICEACCESS_CONFIG"),
		Category: "Data",
		Usage: "read settings from the YAML `FILE`, whose keys are the names of flags of serve; flags and variables take " +
			"precedence (default: " + defaultConfig + " if it exists)",
	}
}

// secretFileFlag returns the flag of the file that contains the secret of another flag.
func secretFileFlag(name, usage string) cli.Flag {
	return &cli.StringFlag{
		Name:     name + "-file",
		Sources:  env(variableName(name + "-file")),
		Category: "Data",
		Usage:    usage,
	}
}

// variableName returns the environment variable of a flag.
func variableName(flag string) string {
	return "DEVICEACCESS_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applySettings sets the flags of c that the command line and the environment leave unset. Errors name the file and the
// line of a setting, and never the content of a secret.
func applySettings(c *cli.Command) error {
	if !hasFlag(c, "config") {
		return nil
	}
	for _, name := range secretFlags {
		if c.IsSet(name) && c.IsSet(name+"-file") {
			return usagef("both %s and %s are set: remove one of them",
				flagSource(c, name), flagSource(c, name+"-file"))
		}
	}
	settings, err := readConfig(c.String("config"))
	if err != nil {
		return err
	}
	c.Metadata = map[string]any{}
	for _, s := range settings {
		if err := s.apply(c); err != nil {
			return err
		}
	}
	for _, name := range secretFlags {
		if !hasFlag(c, name) {
			continue
		}
		if err := applySecret(c, name); err != nil {
			return err
		}
	}
	return nil
}

// flagSource returns the source of a flag's value for messages: the flag, its variable, or a file.
func flagSource(c *cli.Command, flag string) string {
	if source, ok := c.Metadata[flag].(string); ok {
		return source
	}
	for _, f := range c.Flags {
		if f.Names()[0] != flag {
			continue
		}
		for _, variable := range variablesOf(f) {
			if value := os.Getenv(variable); value != "" && value == c.String(flag) {
				return variable
			}
		}
	}
	return "--" + flag
}

func hasFlag(c *cli.Command, name string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == name })
}

// applySecret reads the secret of a flag from its file or from the systemd credential of its name.
func applySecret(c *cli.Command, name string) error {
	if c.IsSet(name) {
		return nil
	}
	file, source := c.String(name+"-file"), flagSource(c, name+"-file")
	if file == "" {
		dir := os.Getenv("CREDENTIALS_DIRECTORY")
		file, source = filepath.Join(dir, name), "the systemd credential "+name
		if _, err := os.Stat(file); dir == "" || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	secret, mode, err := readSecret(file)
	if err != nil {
		return usagef("%s: %w", source, app.ExplainPermission(err))
	}
	if mode&0o004 != 0 {
		logger(c).Warn("every user of this machine can read the file of a secret: run chmod 600 on it",
			"file", file, "setting", source)
	}
	c.Metadata[name] = source
	if err := c.Set(name, secret); err != nil {
		return usagef("%s: the content of %s cannot be used", source, file)
	}
	return nil
}

// readSecret reads a file with one secret, without white space around it. It returns the mode of the file.
func readSecret(path string) (string, fs.FileMode, error) {
	text, mode, err := readSettingsFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, fmt.Errorf("%s does not exist: create it, or name another file", path)
	}
	if err != nil {
		return "", 0, err
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", 0, fmt.Errorf("%s is empty: write the secret into it", path)
	}
	return secret, mode, nil
}

func readSettingsFile(path string) ([]byte, fs.FileMode, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if st.IsDir() {
		return nil, 0, fmt.Errorf("%s is a directory: name a file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSettingsFile+1))
	if err == nil && len(text) > maxSettingsFile {
		err = fmt.Errorf("%s is larger than %d bytes: name another file", path, maxSettingsFile)
	}
	return text, st.Mode(), err
}

// configSetting is a setting of a configuration file.
type configSetting struct {
	name   string
	values []string
	place  string // file:line

	variables []string // of the flag of serve, which tell it from other flags of the name
}

// readConfig reads a configuration file. If file is empty, it reads the default file, which may be missing.
func readConfig(file string) ([]configSetting, error) {
	path := cmp.Or(file, defaultConfig)
	text, _, err := readSettingsFile(path)
	switch {
	case file == "" && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, usagef(
			"read the settings: %w; run the command as the user of the server, or name another file with "+
				"--config (/dev/null for none)",
			err,
		)
	case err != nil:
		return nil, usagef("read the settings: %w; name a file with --config", err)
	}
	return parseConfig(path, text, settingFlags())
}

// settingFlags returns the flags of serve that a configuration file can set, by name.
func settingFlags() map[string]cli.Flag {
	flags := map[string]cli.Flag{}
	for _, f := range serveCommand().Flags {
		if name := f.Names()[0]; len(variablesOf(f)) > 0 && name != "config" {
			flags[name] = f
		}
	}
	return flags
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// parseConfig parses a configuration file and checks each name and value against known.
func parseConfig(path string, text []byte, known map[string]cli.Flag) ([]configSetting, error) {
	var document yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document)
	if errors.Is(err, io.EOF) { // no document
		return nil, nil
	}
	if err != nil {
		said := yamlLine.ReplaceAllString(err.Error(), "$1: ")
		return nil, usagef("%s:%s", path, strings.Replace(said, "yaml: ", " ", 1))
	}
	root := document.Content[0]
	if root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, usagef("%s:%d: the file must have lines such as `listen: 127.0.0.1:8500`", path, root.Line)
	}
	var out []configSetting
	for pair := range slices.Chunk(root.Content, 2) {
		s := configSetting{name: pair[0].Value, place: fmt.Sprintf("%s:%d", path, pair[0].Line)}
		if slices.ContainsFunc(out, func(o configSetting) bool { return o.name == s.name }) {
			return nil, usagef("%s: %s is set twice: remove one of them", s.place, s.name)
		}
		if err := s.read(pair[1], known); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// read reads the value of a setting and tries it on its flag of known.
func (s *configSetting) read(value *yaml.Node, known map[string]cli.Flag) error {
	flag, ok := known[s.name]
	if slices.Contains(secretFlags, s.name) {
		return usagef(
			"%s: %s is a secret, which does not belong into this file: write it into a file that only the user "+
				"of the server can read, and set %[2]s-file to its path",
			s.place,
			s.name,
		)
	}
	if !ok {
		return usagef("%s: unknown setting %q; deviceaccess-server serve --help shows the names", s.place, s.name)
	}
	s.variables = variablesOf(flag)
	nodes := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		if list, ok := flag.(cli.DocGenerationMultiValueFlag); !ok || !list.IsMultiValueFlag() {
			return usagef("%s: %s takes one value, not a list", s.place, s.name)
		}
		nodes = value.Content
	}
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return usagef(
				"%s: %s has no value that can be read: write a text, a number, true, or false",
				s.place,
				s.name,
			)
		}
		s.values = append(s.values, n.Value)
	}
	return s.set(func(value string) error { return flag.Set(s.name, value) })
}

// apply sets the flag of c that has the setting's name and meaning, unless it has a value.
func (s *configSetting) apply(c *cli.Command) error {
	secret, isFile := strings.CutSuffix(s.name, "-file")
	if !s.belongsTo(c) || c.IsSet(s.name) ||
		isFile && slices.Contains(secretFlags, secret) && c.IsSet(secret) {
		return nil
	}
	c.Metadata[s.name] = s.name + " in " + s.place
	return s.set(func(value string) error { return c.Set(s.name, value) })
}

// belongsTo reports whether c has the flag of serve, and not another flag of the same name.
func (s *configSetting) belongsTo(c *cli.Command) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool {
		return f.Names()[0] == s.name && slices.Equal(variablesOf(f), s.variables)
	})
}

// variablesOf returns the environment variables of a flag.
func variablesOf(f cli.Flag) []string {
	if doc, ok := f.(cli.DocGenerationFlag); ok {
		return doc.GetEnvVars()
	}
	return nil
}

func (s *configSetting) set(to func(string) error) error {
	for _, value := range s.values {
		if err := to(value); err != nil {
			return usagef("%s: %s: %s", s.place, s.name, parseReason(err.Error()))
		}
	}
	return nil
}
