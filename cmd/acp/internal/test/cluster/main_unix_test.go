//go:build unix

package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/cli"
	"github.com/goacp/acp/internal/leaktest"
)

const (
	// runVar makes the test binary another program: "acp" or "agent".
	runVar = "CLUSTER_TEST_RUN"
	// ledgerVar is the file in which agents write what they do.
	ledgerVar = "CLUSTER_TEST_LEDGER"
)

// run says how much is tested: the faults take minutes.
var run = flag.Bool("cluster", false, "test faults of several gateways and PostgreSQL servers")

// lease is how long a silent gateway keeps its sessions.
var lease = flag.Duration("lease", 4*time.Second, "how long a silent gateway keeps its sessions")

// dcs says how Patroni uses etcd.
var dcs = flag.String("dcs", "", `"etcd" has Patroni use version 2 of the interface of etcd, "etcd3" version 3; by default the one that is safe`)

// measure says where the figures go.
var measure = flag.String("measure", "", "append the figures of each fault to a `file`")

func TestMain(m *testing.M) {
	switch os.Getenv(runVar) {
	case "acp":
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "agent":
		if err := agent(os.Getenv(ledgerVar)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Gateways start holders of their agents without their own environment.
	if len(os.Args) > 1 && os.Args[1] == "hold" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	leaktest.Main(m)
}

// Of each turn of the agent.
const (
	chunks = 30
	pace   = 15 * time.Millisecond // between two of them, so that faults come in the middle of turns
)

// hold begins prompts whose turns wait, after a third, for the file that [released] names.
const hold = "hold"

func released(ledger string) string { return ledger + ".released" }

// agent says numbered things in each turn, and asks once. It writes to the ledger what it does, before it does it.
func agent(ledger string) error {
	file, err := os.OpenFile(ledger, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	var failed error
	note := func(kind, prompt string, i int) {
		// One write for each line: those of several agents are in the order in which they were written.
		if _, err := fmt.Fprintf(file, "%s %s %d %d\n", kind, prompt, i, os.Getpid()); err != nil {
			failed = err
		}
	}
	a := &acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		blocks := t.Blocks() // a transcript may be before what the user says
		prompt := blocks[len(blocks)-1].(*acp.TextContent).Text
		if prompt == timed {
			return acp.StopEndTurn, sayTimes(t)
		}
		note("begin", prompt, 0)
		for i := range chunks {
			for i == chunks/3 && strings.HasPrefix(prompt, hold) && ctx.Err() == nil {
				if _, err := os.Stat(released(ledger)); err == nil {
					break
				}
				time.Sleep(pace)
			}
			note("say", prompt, i)
			if err := t.Say(fmt.Sprintf("%s/%d", prompt, i)); err != nil {
				return "", err
			}
			if i == chunks/2 {
				note("ask", prompt, i)
				answer, err := t.Ask(acp.Permission{Title: prompt})
				if err != nil {
					return "", err
				}
				note("answer", prompt, i)
				if err := t.Say(fmt.Sprintf("%s?%v", prompt, answer.Allowed)); err != nil {
					return "", err
				}
			}
			time.Sleep(pace)
		}
		return acp.StopEndTurn, failed
	}}
	return a.Serve(context.Background(), acp.Stdio())
}
