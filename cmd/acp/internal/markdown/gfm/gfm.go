// Package gfm has the parsers and renderers of tables, strikethrough, tasks and plain addresses of goldmark's package
// extension, which compiles regular expressions and builds tables for all of its extensions before main: a seventh of
// the time that each process takes until then. These files are copies that do so when they are needed. TestCopy
// compares them with the version of goldmark that go.mod names, and writes them with -update.
package gfm
