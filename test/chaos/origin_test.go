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

// origins says whether opener can tell of a connection whose it is: it reads that where Linux tells it.
const origins = runtime.GOOS == "linux"

// opener is which of these processes has opened a connection that was accepted here; 0: none is found, and why: it has ended as a rule.
func opener(c net.Conn, processes []int) (pid int, why string) {
	socket := ""
	for range 3 { // the table changes while it is read, which may leave one out
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
	return 0, "nobody has " + socket + why
}

// socketOf names the end of a connection as folders of processes do.
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

// inTable is an address as the kernel writes it: the number that its four bytes make on this machine.
func inTable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return ""
	}
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(tcp.IP.To4()), tcp.Port)
}
