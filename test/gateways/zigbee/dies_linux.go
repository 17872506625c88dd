package zigbee

import "syscall"

// dieWithParent makes a child end with the test process.
func diesWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
