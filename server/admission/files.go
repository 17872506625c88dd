package admission

import "syscall"

// Fitting is how many connections of clients fit into the limit of open files: as many as are wanted, and half of it at most.
// The rest is for the database, vendors and endpoints, without which whoever holds connections would keep everything from its
// work. Zero wants Connections. Where they do not fit, files is that limit, and otherwise 0.
func Fitting(wanted int) (fit int, files uint64) {
	if wanted == 0 {
		wanted = Connections
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(wanted) <= limit.Cur/2 {
		return wanted, 0
	}
	return int(max(limit.Cur/2, 1)), limit.Cur
}
