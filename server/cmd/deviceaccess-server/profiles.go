package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	yaml "github.com/oasdiff/yaml3"
)

// profile is a named server and key of a person, from profiles.yaml.
type profile struct {
	Server    string `yaml:"server"`
	KeyFile   string `yaml:"key-file"`
	Workspace string `yaml:"workspace"`
}

// profilesFile is the content of profiles.yaml.
type profilesFile struct {
	Default  string             `yaml:"default"`
	Profiles map[string]profile `yaml:"profiles"`
}

// profilesPath returns the path of profiles.yaml, or "" without a home directory.
func profilesPath() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "deviceaccess", "profiles.yaml")
}

// readProfile reads a profile. Without a name, it returns the default profile, or an empty one if there is none.
func readProfile(name string) (profile, error) {
	path := profilesPath()
	text, _, err := readSettingsFile(path)
	switch {
	case (path == "" || errors.Is(err, fs.ErrNotExist)) && name == "":
		return profile{}, nil
	case path == "":
		return profile{}, usagef("there is no home directory for profiles.yaml: set --server and --key-file instead")
	case errors.Is(err, fs.ErrNotExist):
		return profile{}, usagef(
			"profile %q does not exist, because %s does not: create the file, or set --server and "+
				"--key-file",
			name,
			path,
		)
	case err != nil:
		return profile{}, usagef("read the profiles: %w", err)
	}
	all, err := parseProfiles(path, text)
	if err != nil {
		return profile{}, err
	}
	if name == "" && all.Default == "" {
		return profile{}, nil
	}
	if name == "" {
		name = all.Default
	}
	p, ok := all.Profiles[name]
	if !ok {
		return profile{}, usagef("%s has no profile %q", path, name)
	}
	p.KeyFile = besidesProfiles(path, p.KeyFile)
	return p, nil
}

var yamlErrorLine = regexp.MustCompile(`line (\d+)`)

// parseProfiles parses profiles.yaml. Errors do not quote values, which may be keys in the wrong place.
func parseProfiles(path string, text []byte) (all profilesFile, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		place := path
		if m := yamlErrorLine.FindStringSubmatch(err.Error()); m != nil {
			place = fmt.Sprintf("%s:%s", path, m[1])
		}
		return all, usagef(
			"%s: the file must have a name in default, and profiles with server, key-file, and workspace; "+
				"the key itself belongs into the file that key-file names",
			place,
		)
	}
	return all, nil
}

// besidesProfiles resolves a path relative to profiles.yaml or to the home directory.
func besidesProfiles(profiles, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(profiles), path)
}
