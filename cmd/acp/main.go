// Command acp talks to coding agents over the Agent Client Protocol.
//
// So far it holds one conversation: with a built-in agent that repeats what it
// is told. Talking to other agents comes next.
package main

import (
	"os"

	"github.com/goacp/acp/cmd/acp/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
