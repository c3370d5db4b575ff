// Package chromium drives a Chromium without a window, for tests of pages. Tests are skipped where there is none.
package chromium
