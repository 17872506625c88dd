package chaos_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
)

// origins reports whether opener works: it reads /proc of Linux.
const origins = runtime.GOOS == "linux"

// opener returns which of these processes has opened an accepted connection. If it finds none, it returns 0 and the
// reason: as a rule, the process has exited.
func opener(c net.Conn, processes []int) (pid int, why string) {
	socket := ""
	for range 3 { // the table changes while it is read, which may hide a line
		if socket = socketOf(c.RemoteAddr(), c.LocalAddr()); socket != "" {
			break
		}
	}
	if socket == "" {
		return 0, "there is no such connection"
	}
	for _, pid := range processes {
		folder := fmt.Sprintf("/proc/%d/fd", pid)
		open, err := os.ReadDir(folder)
		if err != nil {
			why += fmt.Sprintf(", %d has ended", pid)
			continue
		}
		for _, fd := range open {
			if is, err := os.Readlink(filepath.Join(folder, fd.Name())); err == nil && is == socket {
				return pid, ""
			}
		}
		why += fmt.Sprintf(", %d has %d others", pid, len(open))
	}
	return 0, "no process has " + socket + why
}

// socketOf returns the name of a connection's end in the directory of a process.
func socketOf(local, remote net.Addr) string {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) > 9 && string(f[1]) == inTable(local) && string(f[2]) == inTable(remote) {
			return "socket:[" + string(f[9]) + "]"
		}
	}
	return ""
}

// inTable formats an address like the kernel: its four bytes as a number of this machine.
func inTable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return ""
	}
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(tcp.IP.To4()), tcp.Port)
}
