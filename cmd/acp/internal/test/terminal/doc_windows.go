// Package terminal drives a program on a pseudo-terminal. There is none for
// it on this system.
package terminal
