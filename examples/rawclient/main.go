// Command rawclient starts an agent, sends it one prompt and prints what it
// says, written on the wire types and the engine alone.
//
//	rawclient [-protocol 1|2] [-prompt TEXT] COMMAND [ARG ...]
//
// An interrupt cancels the turn. The exit status is 0 when the turn ended with
// end_turn, 2 for wrong usage and 1 otherwise.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

func main() {
	protocol := flag.Int("protocol", 1, "protocol `version` to speak, 1 or 2")
	prompt := flag.String("prompt", "hello from rawclient", "what to ask")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: rawclient [-protocol 1|2] [-prompt TEXT] COMMAND [ARG ...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 || *protocol != 1 && *protocol != 2 {
		flag.Usage()
		os.Exit(2)
	}
	reason, err := run(*protocol, *prompt, flag.Args(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rawclient:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "stop reason:", reason)
	if reason != "end_turn" {
		os.Exit(1)
	}
}

// stopGrace is how long the agent may take to exit once its input has ended.
const stopGrace = 3 * time.Second

// run plays one conversation and returns why the turn stopped.
func run(protocol int, prompt string, command []string, out io.Writer) (reason string, err error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	c := &client{out: out, idle: make(chan string, 1)}
	mux := &jsonrpc.Mux{StrictIDs: protocol == 2} // whatever else the agent asks for is answered "method not found"
	if protocol == 1 {
		c.handleV1(mux)
	} else {
		c.handleV2(mux)
	}
	conn := jsonrpc.NewConn(jsonrpc.NewLineStream(stdout, stdin), jsonrpc.Config{Mux: mux, Lane: lane})
	defer func() {
		// The agent exits when its input ends; if it does not, it is killed.
		kill := time.AfterFunc(stopGrace, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		err = firstOf(err, conn.Close())
		err = firstOf(err, cmd.Wait())
	}()
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if protocol == 1 {
		return c.talkV1(interrupted, conn, cwd, prompt)
	}
	return c.talkV2(interrupted, conn, cwd, prompt)
}

func firstOf(errs ...error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

// A client prints what the agent says.
type client struct {
	out  io.Writer
	idle chan string // protocol version 2: why the turn stopped
}

// lane puts the messages of a session onto the session's timeline, so that a
// turn's answer comes behind its updates.
func lane(_ string, params any) string {
	switch p := params.(type) {
	case *acpv1.SessionNotification:
		return string(p.SessionID)
	case *acpv1.PromptRequest:
		return string(p.SessionID)
	case *acpv2.UpdateSessionNotification:
		return string(p.SessionID)
	case *acpv2.PromptRequest:
		return string(p.SessionID)
	}
	return ""
}
