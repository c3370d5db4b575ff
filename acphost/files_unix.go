//go:build unix

package acphost

import "syscall"

const nonblock = syscall.O_NONBLOCK
