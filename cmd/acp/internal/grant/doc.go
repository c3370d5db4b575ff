// Package grant compares what a user was asked about with what is done: where it leads, and whether it
// is the same act.
package grant
