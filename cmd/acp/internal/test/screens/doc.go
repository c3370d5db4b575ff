// Package screens holds the tests that drive the whole program on a terminal
// and compare what its screens look like with docs/screens. To write those anew,
// run its tests with -update and look at the difference.
package screens
