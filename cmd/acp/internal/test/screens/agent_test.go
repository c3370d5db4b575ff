//go:build !windows

package screens

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// serve is an agent that does what prompts name. It keeps no sessions. With the
// argument "deaf" it does not end when its client does.
func serve(args []string) int {
	agent := &acp.Agent{
		Info:   acp.Implementation{Name: "scripted", Title: "Scripted", Version: "0.1"},
		Prompt: play,
	}
	deaf := len(args) > 0 && args[0] == "deaf"
	if deaf {
		trap = "trap '' HUP TERM; "
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	}
	err := agent.Serve(context.Background(), acp.Stdio())
	if deaf {
		select {}
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// trap is what a command of a deaf agent does first.
var trap string

// bigSize is the size of a big message, in bytes.
const bigSize = 20_000_000

// bigLine is a line of it.
const bigLine = "a line of a message that is very long, again and again\n"

func play(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	switch what, _, _ := strings.Cut(strings.TrimSpace(t.Text()), " "); what {
	case "big":
		n := bigSize / len(bigLine)
		_ = t.Say("the first line\n" + strings.Repeat(bigLine, n) + "the last line")
	case "flood":
		for i := range 50_000 {
			if err := t.Say(fmt.Sprintf("word%d ", i)); err != nil {
				return "", err
			}
		}
		_ = t.Say("\n\nthe flood is over")
	case "crash":
		_ = t.Say("half an ans")
		call := t.ToolCall(acp.ToolCall{Title: "Break", Kind: acp.ToolKindOther})
		if !call.Permit(acp.Permission{Title: "Break?"}) {
			return acp.StopEndTurn, nil
		}
		fmt.Fprintln(os.Stderr, "panic: out of cheese")
		os.Exit(42)
	case "work": // counts, beside a command that runs for ever
		call := t.ToolCall(acp.ToolCall{Title: "Work", Kind: acp.ToolKindExecute})
		go func() {
			_, _ = call.Exec(acp.Exec{Command: "sh", Args: []string{"-c", trap + "echo shell $$; while :; do sleep 1; done"}})
		}()
		_ = t.Say(fmt.Sprintf("agent %d ", os.Getpid()))
		for i := range 150 {
			if err := t.Say(fmt.Sprintf("count%d ", i)); err != nil {
				break
			}
			time.Sleep(10 * time.Millisecond) // as models do
		}
		<-ctx.Done()
	case "noise": // on the standard error
		fmt.Fprintln(os.Stderr, "warning: the cache is cold, so the first answer takes longer than the ones that follow it")
		fmt.Fprintln(os.Stderr, "level=info msg=\"request sent\" tokens=120")
		_ = t.Say("I have said something on my standard error.")
	case "behind": // leaves a command that runs
		term, err := t.Session().Run(acp.Exec{Command: "sh", Args: []string{"-c", "echo listening on port 8080; exec sleep 600"}, Line: "serve --port 8080"})
		if err != nil {
			return "", err
		}
		if err := t.Session().SetBackground(&acpv2.BackgroundTerminal{TerminalID: term.ID()}); err != nil {
			return "", err
		}
		_ = t.Say("The server runs.")
	default:
		_ = t.Say("You said: " + t.Text())
	}
	return acp.StopEndTurn, nil
}
