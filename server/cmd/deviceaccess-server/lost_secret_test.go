package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// A credential that could not be written down is nobody's: whoever runs the command is told, and how to end it.
func TestACredentialThatCannotBeWrittenIsToldOf(t *testing.T) {
	t.Parallel()
	disk, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no disk that is full")
	}
	defer disk.Close()
	p := newProgram(t)
	p.ok("workspaces", "create", "Home")
	create := p.command("keys", "create")
	var said bytes.Buffer
	create.Stdout, create.Stderr = disk, &said
	if err := create.Run(); err == nil || !strings.Contains(said.String(), "no space left on device") || !strings.Contains(said.String(), "keys revoke ") {
		t.Errorf("%v: %s", err, said.String())
	}
}
