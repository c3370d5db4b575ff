//go:build !unix

package acphost

const nonblock = 0
