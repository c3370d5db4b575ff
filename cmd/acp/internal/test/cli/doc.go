// Package cli tests the program as users and scripts meet it: the real command line as a process,
// against agents that behave in every way there is.
package cli
