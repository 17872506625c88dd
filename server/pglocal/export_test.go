package pglocal

import "syscall"

// DropLock releases the directory while the server runs, as when our process is killed without the server noticing.
func (c *Cluster) DropLock() error {
	lock := c.lock
	c.lock = nil
	return lock.Release()
}

// Socket returns the directory of the socket.
func (c *Cluster) Socket() string { return c.socket }

// DataDir returns the data directory.
func (c *Cluster) DataDir() string { return c.data.path }

// Fetch is what Locate does if nothing is installed.
var Fetch = fetch

// ServerAccount returns the user that the server runs as.
var ServerAccount = serverAccount

// Credential returns nil for our own user.
func (a account) Credential() *syscall.Credential { return a.cred }

// ServersOf lists the processes of a server on a data directory.
var ServersOf = serversOf

// Duplicate returns another descriptor of the lock's file, as a child process has before it runs its program.
func (l *Lock) Duplicate() (int, error) { return syscall.Dup(int(l.file.Fd())) }
