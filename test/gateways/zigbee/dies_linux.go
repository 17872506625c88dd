package zigbee

import "syscall"

// diesWithUs has a child end with the test's process, however that ends.
func diesWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
