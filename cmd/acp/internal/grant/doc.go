// Package grant compares what a user was asked about with what is done: whether it is the same act, and
// whether it still leads to the same place. The host of a conversation and the tap use it, so that the
// same act is not asked about twice in either.
package grant
