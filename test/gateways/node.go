package gateways

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// PreferNode makes the lab's scripts run with the Node.js of one of its packages, if that runs on this machine.
// Otherwise the Node.js on the PATH must have version major or newer. It returns ErrMissing if there is none.
func (l *Lab) PreferNode(ctx context.Context, pkg string, major int) error {
	own := filepath.Join(l.modules, pkg, "bin", "node")
	if _, err := os.Stat(own); err == nil {
		l.node = own
		return nil
	}
	node, err := findNode(ctx, major)
	if err != nil {
		return err
	}
	l.node = node
	return nil
}

// Command returns a command that runs a JavaScript program with the lab's Node.js.
func (l *Lab) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, l.node, append([]string{program}, args...)...)
}

// Module returns the directory of one of the lab's packages.
func (l *Lab) Module(pkg string) string { return filepath.Join(l.modules, filepath.FromSlash(pkg)) }
