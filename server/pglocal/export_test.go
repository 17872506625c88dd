package pglocal

import "syscall"

// DropLock gives the directory free while the server runs on, as when our process is killed where nothing
// tells the server.
func (c *Cluster) DropLock() error {
	lock := c.lock
	c.lock = nil
	return lock.Release()
}

// Socket is the folder of the socket.
func (c *Cluster) Socket() string { return c.socket }

// DataDir is where the data is.
func (c *Cluster) DataDir() string { return c.data.path }

// Fetch is the way Locate goes when nothing is installed.
var Fetch = fetch

// ServerAccount is who the server runs as when there is no data yet.
var ServerAccount = serverAccount

// Credential is nil for our own user.
func (a account) Credential() *syscall.Credential { return a.cred }

// ServersOf lists the processes of a server on a data directory.
var ServersOf = serversOf
