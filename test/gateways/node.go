package gateways

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// PreferNode has the lab's scripts run by the Node.js in one of its own packages, where that runs on this machine.
// What is on the PATH has to be of the major version or newer otherwise. It fails with ErrMissing.
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

// Command runs a program of JavaScript, wherever that is, by the lab's Node.js.
func (l *Lab) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, l.node, append([]string{program}, args...)...)
}

// Module is the folder of one of the lab's packages.
func (l *Lab) Module(pkg string) string { return filepath.Join(l.modules, filepath.FromSlash(pkg)) }
