// Package grant compares what a user was asked about with what is done: whether it is the same act,
// and whether it still leads to the same place. The backend and the tap use it, so that neither
// asks about the same act twice.
package grant
