// Package pgtest runs PostgreSQL servers for tests: alone, or as a primary with standbys that a test can crash,
// pause, promote and bring back. Tests are skipped where PostgreSQL is not installed.
package pgtest
