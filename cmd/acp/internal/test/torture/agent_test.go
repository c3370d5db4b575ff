//go:build unix

package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// A ledger is a file to which the agent writes what it does, a line for each thing. A line that is written
// survives the end of the agent.
type ledger struct{ file *os.File }

func openLedger(path string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &ledger{f}, err
}

func (l *ledger) add(format string, args ...any) error {
	_, err := fmt.Fprintf(l.file, format+"\n", args...)
	return err
}

// A task is what a prompt asks the agent for.
type task struct {
	Op     string `json:"op"`
	Chunks int    `json:"chunks"`
	Asks   int    `json:"asks"` // one after each so many chunks
}

// people are the clients that answer questions. Each chooses the option that has its name.
var people = []string{"one", "two", "prompter", "http1", "http2", "ws1", "ws2"}

// playAgent is an agent that says numbered words and asks questions. It serves standard input and output.
func playAgent(path string) error {
	l, err := openLedger(path)
	if err != nil {
		return err
	}
	if err := l.add("start %d %d", os.Getpid(), os.Getppid()); err != nil {
		return err
	}
	agent := &acp.Agent{
		ResumeSession: func(context.Context, *acp.AgentSession, bool) error { return nil },
		Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			stop, err := work(l, t)
			if err != nil {
				err = errors.Join(err, l.add("failed %v", err))
			}
			return stop, err
		},
	}
	return agent.Serve(context.Background(), acp.WrapTransport(acp.Stdio(), func(s jsonrpc.Stream) jsonrpc.Stream {
		return jsonrpc.Tap(s, func(sent bool, frame []byte) {
			var e struct{ ID, Method json.RawMessage }
			if !sent && bytes.Contains(frame, []byte(`"outcome"`)) && json.Unmarshal(frame, &e) == nil && e.Method == nil {
				_ = l.add("response %d %s", os.Getpid(), e.ID)
			}
		})
	}))
}

// work does what a prompt asks for.
func work(l *ledger, t *acp.Turn) (acp.StopReason, error) {
	var w task
	blocks := t.Blocks()
	if err := json.Unmarshal([]byte(blocks[len(blocks)-1].(*acp.TextContent).Text), &w); err != nil {
		return "", err
	}
	if err := l.add("run %s", w.Op); err != nil {
		return "", err
	}
	var options []acp.PermissionOption
	for _, name := range people {
		options = append(options, acp.PermissionOption{OptionID: acp.PermissionOptionID(name), Name: name, Kind: acp.PermissionOptionKindAllowOnce})
	}
	for i := range w.Chunks {
		if err := t.Say(fmt.Sprintf("%s/%d", w.Op, i)); err != nil {
			return "", err
		}
		if w.Asks == 0 || i%w.Asks != w.Asks-1 {
			continue
		}
		title := fmt.Sprintf("%s?%d", w.Op, i)
		answer, err := t.Ask(acp.Permission{Title: title, Options: options})
		if err != nil {
			return "", err
		}
		if err := l.add("answer %s %s", title, answer.Option.OptionID); err != nil {
			return "", err
		}
		if err := t.Say(fmt.Sprintf("%s %s", title, answer.Option.OptionID)); err != nil {
			return "", err
		}
	}
	return acp.StopEndTurn, l.add("done %s", w.Op)
}

// entries returns the lines of a ledger, in words.
func entries(path string) (lines [][]string, err error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasSuffix(line, "\n") {
			lines = append(lines, strings.Fields(line))
		}
	}
	return lines, err
}
