// Command policy is a client that never asks: a file of rules decides what its
// agent may do with the client's files and terminals, and how its questions are
// answered. Every decision is logged. Whatever the agent does by itself, it need
// not ask for.
//
//	policy -rules FILE PROMPT AGENT [ARG...]
//
// See rules.json beside this file for an example.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
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

// permit has the policy decide about what the agent has not asked for.
func permit(ctx context.Context, policy *acphost.Policy, r acphost.Request) error {
	r.Options = acp.DefaultPermissionOptions()
	if policy.Decide(ctx, r).Effect != acphost.EffectAllow {
		return fs.ErrPermission
	}
	return nil
}

// notPlain reports whether a word could be something else in a line.
func notPlain(word string) bool {
	return word == "" || strings.ContainsFunc(word, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune("\"'\\`$;&|<>(){}[]*?~#!%^", c)
	})
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
	permitCommand := func(ctx context.Context, req *acpv1.CreateTerminalRequest) error {
		r := acphost.Request{Session: string(req.SessionID), Kind: string(acp.ToolKindExecute), Cwd: cmp.Or(req.Cwd, cwd)}
		// Rules are about lines. Arguments that are not plain words, and
		// variables, which can change what a command does, fit in none.
		words := append([]string{req.Command}, req.Args...)
		if len(req.Env) == 0 && (len(words) == 1 || !slices.ContainsFunc(words, notPlain)) {
			r.Command = strings.Join(words, " ")
		}
		return permit(ctx, policy, r)
	}
	files := acphost.Dir(cwd)
	files.PermitRead = func(ctx context.Context, path string) error {
		r := acphost.Request{Kind: string(acp.ToolKindRead), Cwd: cwd, Paths: []string{path}}
		// What no rule is about may be read.
		switch policy.Judge(r).Effect {
		case acphost.EffectDeny, acphost.EffectAsk:
			return permit(ctx, policy, r)
		}
		return nil
	}
	files.PermitWrite = func(ctx context.Context, path string) error {
		return permit(ctx, policy, acphost.Request{Kind: string(acp.ToolKindEdit), Cwd: cwd, Paths: []string{path}})
	}
	client := acp.Client{
		Files: files,
		Terminals: func(*acp.ClientConn) acp.TerminalHost {
			terminals := acphost.Local(cwd)
			terminals.Permit = permitCommand
			return terminals
		},
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
