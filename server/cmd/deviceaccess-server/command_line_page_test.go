package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every command and flag of the page exists, and the page names every command.
func TestCommandLinePage(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^deviceaccess-server ([^>#\n]*)`).FindAllStringSubmatch(string(b), -1)
	if len(lines) < 12 {
		t.Fatalf("only %d commands are found", len(lines))
	}
	for _, l := range lines {
		if !strings.HasPrefix(l[1], "completion ") { // package cli adds it when the program runs
			commandExists(t, strings.TrimSpace(l[1]))
		}
	}
	table, _, _ := strings.Cut(string(b), "## Server and key")
	named := regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(table, -1)
	for _, c := range command().Commands {
		if !slices.ContainsFunc(named, func(m []string) bool { return m[1] == c.Name }) {
			t.Errorf("the page does not name %s", c.Name)
		}
	}
}
