package admission

import "syscall"

// FitConnections returns how many client connections fit into the process's limit of open files: wanted, but at most
// half of the limit. The rest is for the database, vendors, and endpoints. A wanted of 0 means DefaultConnections. If
// wanted does not fit, files is the limit; otherwise it is 0.
func FitConnections(wanted int) (fit int, files uint64) {
	if wanted == 0 {
		wanted = DefaultConnections
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || uint64(wanted) <= limit.Cur/2 {
		return wanted, 0
	}
	return int(max(limit.Cur/2, 1)), limit.Cur
}
