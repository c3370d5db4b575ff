//go:build unix

package proxies

import "syscall"

// nonblock opens a pipe without waiting for its writer, so that it can be refused.
const nonblock = syscall.O_NONBLOCK
