// Command policy is a client that never asks: a file of rules decides what its
// agent may do, and every decision is written down.
//
//	policy -rules FILE PROMPT AGENT [ARG...]
//
// See rules.json beside this file for an example.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
)

func main() {
	rules := flag.String("rules", "", "`file` with the rules, in JSON")
	flag.Parse()
	if *rules == "" || flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: policy -rules FILE PROMPT AGENT [ARG...]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rules, flag.Arg(0), acp.Command(flag.Arg(1), flag.Args()[2:]...), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "policy:", err)
		os.Exit(1)
	}
}

// run has a turn with the agent. What it says goes to out, decisions to audit.
func run(ctx context.Context, rules, prompt string, agent acp.Transport, out, audit io.Writer) error {
	data, err := os.ReadFile(rules)
	if err != nil {
		return err
	}
	policy, err := acphost.ParsePolicy(data)
	if err != nil {
		return fmt.Errorf("%s: %w", rules, err)
	}
	enc := json.NewEncoder(audit)
	policy.Audit = func(r acphost.Record) { _ = enc.Encode(r) }

	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	terminals := acphost.Local(cwd)
	defer terminals.Close()
	client := acp.Client{
		Files:             acphost.Dir(cwd),
		Terminals:         terminals,
		RequestPermission: policy.RequestPermission,
	}
	conn, err := client.Connect(ctx, agent)
	if err != nil {
		return err
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: cwd})
	if err != nil {
		return err
	}
	reply := session.Prompt(ctx, acp.Text(prompt))
	for u, err := range reply.Updates() {
		if err != nil {
			return err
		}
		fmt.Fprint(out, u.Text())
	}
	fmt.Fprintln(out)
	res, err := reply.Wait()
	if err == nil && res.StopReason != acp.StopEndTurn {
		err = fmt.Errorf("the turn ended with %q", res.StopReason)
	}
	return err
}
