// Command cross checks the types of packages, and of their tests, for other systems. It does so from the sources of all
// that they import, without compiling any of it, which takes several times as long.
//
//	go run ./cmd/acp/internal/cross windows darwin -- work
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/tools/go/packages"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "cross:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	end := slices.Index(args, "--")
	if end <= 0 || end+1 == len(args) {
		return errors.New("usage: cross SYSTEM... -- PACKAGE..., with systems as GOOS names them")
	}
	for _, system := range args[:end] {
		all, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Tests: true, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")}, args[end+1:]...)
		if err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
		n := 0
		for pkg := range packages.Postorder(all) {
			for _, err := range pkg.Errors {
				fmt.Fprintln(stderr, err)
				n++
			}
		}
		if n > 0 {
			return fmt.Errorf("%s: %d errors", system, n)
		}
		fmt.Fprintf(stdout, "%s: %d packages have no errors\n", system, len(all))
	}
	return nil
}
