package zigbee

import "syscall"

// dieWithParent makes a child end with the test process.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
