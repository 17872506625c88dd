//go:build !linux

package zigbee

import "syscall"

func diesWithUs() *syscall.SysProcAttr { return nil }
