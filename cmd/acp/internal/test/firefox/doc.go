// Package firefox drives a Firefox without a window, for tests of pages. Tests are skipped where there is none.
package firefox
