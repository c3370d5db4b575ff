// Command acp talks to coding agents over the Agent Client Protocol: in a
// terminal, from a script, and between programs. docs/cli.md describes it.
package main

import (
	"os"

	"github.com/goacp/acp/cmd/acp/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
