package labs

import (
	"context"
	"os"
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
