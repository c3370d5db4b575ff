package main

import (
	"regexp"
	"slices"
	"strings"
)

// A call is a go test without its packages.
type call struct {
	flags []string // of go test, each with its value in one element, if it has one
	rest  []string // from -args on
}

// switches are the flags of go test, and of the tests here, that have no value of their own.
var switches = []string{
	"a", "artifacts", "asan", "benchmem", "c", "cluster", "cover", "failfast", "fullpath", "i", "json", "msan", "n", "race", "short", "trimpath", "v", "work", "x",
}

// split takes the arguments of a go command apart. It reports whether they are a go test whose tests can be
// run again: one that runs tests here, and prints what people read.
func split(args []string) (c call, again bool) {
	if len(args) == 0 || args[0] != "test" {
		return call{}, false
	}
	for args = args[1:]; len(args) > 0; args = args[1:] {
		name, isFlag := strings.CutPrefix(strings.Replace(args[0], "--", "-", 1), "-")
		name, _, hasValue := strings.Cut(name, "=")
		name = strings.TrimPrefix(name, "test.")
		switch {
		case name == "args" && isFlag:
			c.rest = args
			return c, true
		case !isFlag: // a package
		case slices.Contains([]string{"c", "json", "list", "n", "fuzz", "bench"}, name):
			return call{}, false
		case hasValue || slices.Contains(switches, name) || len(args) == 1:
			c.flags = append(c.flags, args[0])
		default:
			c.flags = append(c.flags, args[0]+"="+args[1])
			args = args[1:]
		}
	}
	return c, true
}

// alone returns the arguments of a go command that runs only what failed. The profiles of the first run stay.
func (c call) alone(f failure) []string {
	args := []string{"test"}
	for _, flag := range c.flags {
		name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		switch name = strings.TrimPrefix(name, "test."); {
		case name == "count", name == "coverprofile", name == "coverpkg", name == "cover":
		case name == "run" && f.test != "":
		default:
			args = append(args, flag)
		}
	}
	args = append(args, "-count=1")
	if f.test != "" {
		parts := strings.Split(f.test, "/")
		for i, p := range parts {
			parts[i] = "^" + regexp.QuoteMeta(p) + "$"
		}
		args = append(args, "-run="+strings.Join(parts, "/"))
	}
	return append(append(args, f.pkg), c.rest...)
}
