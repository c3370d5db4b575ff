// Command harness gives coding agents the same tasks through ACP, with a stand-in for
// their models that says the same to each of them. It measures what the agents themselves
// decide: how much they send, how much of it repeats, what they do to files, and what is
// left of them.
//
//	cd interop/real && npm install --no-save --ignore-scripts   # once; 1.7 GB
//	cd bench && GOWORK=off go run ./harness                     # all agents, about ten minutes
//	GOWORK=off go run ./harness -agents acp,codex-acp -tasks edit
//	GOWORK=off go run ./harness -write                          # writes HARNESS.md
//
// Nothing here measures how good a model is.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "mcp" {
		serveMCP(os.Args[2], os.Stdin, os.Stdout)
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("agents", "", "comma-separated `names` of the agents; all by default")
	some := flag.String("tasks", "", "run the tasks whose name contains this `text`")
	modules := flag.String("modules", "../interop/real/node_modules", "`directory` with the agents from npm")
	write := flag.Bool("write", false, "write HARNESS.md")
	keep := flag.String("keep", "", "keep homes, directories and requests in this `directory`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "acp-harness-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at, err := filepath.Abs(*modules)
	if err != nil {
		return err
	}
	h := &harness{dir: dir, modules: at, keep: *keep}
	var results []result
	for _, a := range agents {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), a.name) {
			continue
		}
		command, version, err := h.command(ctx, a)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", a.name, err)
			continue
		}
		for _, t := range tasks {
			if !strings.Contains(t.name, *some) || ctx.Err() != nil {
				continue
			}
			r := h.run(ctx, a, t, command)
			r.agent, r.version = a.name, version
			fmt.Fprintln(os.Stderr, r.line())
			results = append(results, r)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	report := report(results)
	if !*write {
		fmt.Print(report)
		return nil
	}
	return os.WriteFile("HARNESS.md", []byte(report), 0o644)
}
