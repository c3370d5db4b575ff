// Package screens has the tests that drive the whole program on a terminal and compare its screens
// with docs/screens. To write those anew, run the tests with -update and read the difference.
package screens
