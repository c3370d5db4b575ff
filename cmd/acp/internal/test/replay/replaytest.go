// Package replay is an agent for tests. Its sessions can be loaded, and it replays their history in
// the ways in which real agents do.
package replay

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Kinds are the ways in which the agent replays history.
var Kinds = []string{
	"everything", // as it was
	"stable",     // with ids of messages, the same each time
	"ids",        // with ids, other ones each time
	"part",       // the latest turn only
	"nothing",
	"words", // in its own words
	"late",  // after the answer to session/load
	"later", // when the next prompt was sent, before its own words
}

// An agent is one process of it.
type agent struct {
	kind string
	file string
	in   *bufio.Reader
	out  io.Writer

	past  []string // prompts that were answered
	late  bool     // history is replayed before the next words
	calls int      // ids of tool calls, which are counted from 1 in each process
	asked int
	n     int               // the turn
	ids   map[string]string // of messages
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion int `json:"protocolVersion"`
		Prompt          []struct{ Text string }
	} `json:"params"`
	Result json.RawMessage `json:"result"`
}

// Serve is the agent on a pair of streams, until in ends. It keeps its memory in dir. A prompt with
// the word ask makes it ask for permission, one with slow is answered in part until it is
// cancelled, and one with die ends the process.
func Serve(kind, dir string, in io.Reader, out io.Writer) error {
	a := &agent{kind: kind, file: filepath.Join(dir, "history.json"), in: bufio.NewReader(in), out: out, ids: map[string]string{}}
	if data, err := os.ReadFile(a.file); err == nil {
		if err := json.Unmarshal(data, &a.past); err != nil {
			return err
		}
	}
	for {
		m, err := a.read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch m.Method {
		case "initialize":
			a.answer(m, `{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"agentInfo":{"name":"replay","version":"1"}}`)
		case "session/new":
			a.answer(m, `{"sessionId":"s-1"}`)
		case "session/load":
			switch a.kind {
			case "late":
				a.answer(m, `{}`)
				a.replay()
			case "later":
				a.answer(m, `{}`)
				a.late = true
			default:
				a.replay()
				a.answer(m, `{}`)
			}
		case "session/prompt":
			if err := a.turn(m); err != nil {
				return err
			}
		default:
			if m.Method != "" && m.ID != nil {
				fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", m.ID)
			}
		}
	}
}

func (a *agent) read() (m message, err error) {
	line, err := a.in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	return m, err
}

func (a *agent) answer(m message, result string) {
	fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
}

func (a *agent) update(format string, args ...any) {
	for i, x := range args {
		if s, ok := x.(string); ok {
			b, _ := json.Marshal(s)
			args[i] = string(b)
		}
	}
	fmt.Fprintf(a.out, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{`+format+"}}}\n", args...)
}

// chunk sends a piece of a message of the turn.
func (a *agent) chunk(what, text string) {
	more, id := "", fmt.Sprint(what[:1], a.n)
	if a.kind == "ids" {
		if a.ids[what+id] == "" {
			a.ids[what+id] = rand.Text()
		}
		id = a.ids[what+id]
	}
	if a.kind == "ids" || a.kind == "stable" {
		more = fmt.Sprintf(`,"messageId":%q`, id)
	}
	a.update(`"sessionUpdate":%s,"content":{"type":"text","text":%s}`+more, what, text)
}

func (a *agent) callID() string {
	if a.kind == "ids" {
		return rand.Text()
	}
	a.calls++
	return fmt.Sprint("call_", a.calls)
}

// replay sends the history.
func (a *agent) replay() {
	past := a.past
	switch a.kind {
	case "nothing":
		past = nil
	case "part":
		past = past[max(len(past)-1, 0):]
	}
	for i, text := range past {
		a.n = len(a.past) - len(past) + i
		said, answer := text, "Answer to "+text+".\nThat is all."
		if a.kind == "words" {
			said += "\n<system-reminder>Be nice.</system-reminder>"
			answer = "I said something about " + text + "."
		}
		a.chunk("user_message_chunk", said)
		a.update(`"sessionUpdate":"tool_call","toolCallId":%s,"title":%s,"kind":"read","status":"completed"`, a.callID(), "Read "+text)
		a.chunk("agent_message_chunk", answer)
	}
}

// turn answers a prompt.
func (a *agent) turn(m message) error {
	var text string
	for _, p := range m.Params.Prompt {
		text += p.Text
	}
	if a.late {
		a.late = false
		a.replay()
	}
	a.n = len(a.past)
	a.chunk("agent_thought_chunk", "Thinking of "+text+".")
	id := a.callID()
	a.update(`"sessionUpdate":"tool_call","toolCallId":%s,"title":%s,"kind":"read","status":"pending"`, id, "Read "+text)
	if strings.Contains(text, "die") {
		a.chunk("agent_message_chunk", "Half of ")
		os.Exit(1)
	}
	if strings.Contains(text, "slow") {
		a.chunk("agent_message_chunk", "slow 1 slow 2")
		for m.Method != "session/cancel" {
			id := m.ID
			var err error
			if m, err = a.read(); err != nil {
				return err
			}
			m.ID = id
		}
		a.answer(m, `{"stopReason":"cancelled"}`)
		return nil
	}
	a.update(`"sessionUpdate":"tool_call_update","toolCallId":%s,"status":"completed","content":[{"type":"content","content":{"type":"text","text":%s}}]`, id, "What is in "+text)
	if strings.Contains(text, "ask") {
		if err := a.ask(text); err != nil {
			return err
		}
	}
	a.update(`"sessionUpdate":"plan","entries":[{"content":%s,"priority":"low","status":"completed"}]`, "Do "+text)
	a.chunk("agent_message_chunk", "Answer to "+text+".\n")
	a.chunk("agent_message_chunk", "That is all.")
	if !strings.Contains(text, "silent") {
		a.past = append(a.past, text)
	}
	data, err := json.Marshal(a.past)
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.file, data, 0o600); err != nil {
		return err
	}
	a.answer(m, `{"stopReason":"end_turn"}`)
	return nil
}

// ask asks for permission to change a file, which the history does not have.
func (a *agent) ask(text string) error {
	id := a.callID()
	a.asked++
	call, err := json.Marshal(map[string]any{
		"toolCallId": id, "title": "Write " + text, "kind": "edit", "status": "pending",
		"content": []any{map[string]any{"type": "diff", "path": "/tmp/file.txt", "oldText": "was\n", "newText": text + "\n"}},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":"ask-%d","method":"session/request_permission","params":{"sessionId":"s-1","toolCall":%s,`+
		`"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}`+"\n", a.asked, call)
	if _, err := a.read(); err != nil {
		return err
	}
	a.update(`"sessionUpdate":"tool_call_update","toolCallId":%s,"status":"completed"`, id)
	return nil
}
