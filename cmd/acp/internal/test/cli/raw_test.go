package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// A rawAgent writes its frames itself, of version 1, as agents do that are not made with this module. Its
// name says what it does.
type rawAgent struct {
	does  string
	in    *bufio.Reader
	next  int // id of its next request
	turns int
}

type rawFrame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string `json:"sessionId"`
		Version   int    `json:"protocolVersion"`
		Client    struct {
			FS struct {
				Write bool `json:"writeTextFile"`
			} `json:"fs"`
		} `json:"clientCapabilities"`
		Cwd string `json:"cwd"`
	} `json:"params"`
}

// rawAgentMain serves standard input and output to the end.
func rawAgentMain(does string) {
	a := &rawAgent{does: does, in: bufio.NewReaderSize(os.Stdin, 1<<20)}
	for {
		f, ok := a.read()
		if !ok {
			return
		}
		if f.ID != nil && f.Method != "" {
			a.request(f)
		}
	}
}

// note appends to the file of the variable RAW_LOG, if there is one.
func note(format string, args ...any) {
	f, err := os.OpenFile(os.Getenv("RAW_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, format, args...)
	_ = f.Close()
}

func (a *rawAgent) read() (f rawFrame, ok bool) {
	line, err := a.in.ReadBytes('\n')
	return f, err == nil && json.Unmarshal(line, &f) == nil
}

func (a *rawAgent) request(f rawFrame) {
	switch f.Method {
	case "initialize":
		note("start version %d, files %v\n", f.Params.Version, f.Params.Client.FS.Write)
		name := "raw"
		if a.does == "gemini" {
			name = "gemini-cli"
		}
		version := "1"
		switch a.does {
		case "repeats-version":
			version = fmt.Sprint(f.Params.Version)
		case "version-text":
			version = `"1"`
		}
		a.answer(f, fmt.Sprintf(`"result":{"protocolVersion":%s,"agentInfo":{"name":%q,"version":"1"},"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{}}}}`, version, name))
	case "session/new":
		if a.does == "option-refused" {
			a.answer(f, `"result":{"sessionId":"s1","configOptions":[{"id":"model","name":"Model","category":"model","type":"select",`+
				`"currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]}`)
			return
		}
		a.answer(f, `"result":{"sessionId":"s1"}`)
	case "session/list":
		a.list(f)
	case "session/set_config_option":
		a.answer(f, `"error":{"code":-32601,"message":"Method not found"}`)
	case "session/load":
		a.answer(f, a.missing(f.Params.SessionID))
	case "session/prompt":
		if a.does == "text-id" { // and then answers as it should, so that the turn ends
			fmt.Printf(`{"jsonrpc":"2.0","id":"%s","result":{"stopReason":"end_turn"}}`+"\n", f.ID)
		}
		if end := a.turn(); end != "" {
			a.answer(f, end)
			return
		}
		a.answer(f, `"result":{"stopReason":"end_turn"}`)
	default:
		a.answer(f, `"error":{"code":-32601,"message":"Method not found"}`)
	}
}

func (a *rawAgent) answer(f rawFrame, rest string) {
	fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", f.ID, rest)
}

func (a *rawAgent) update(u string) {
	fmt.Printf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}`+"\n", u)
}

func (a *rawAgent) say(text string) {
	data, _ := json.Marshal(text)
	a.update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}`, data))
}

// ask asks for permission for a tool call that nothing was said of, and waits for the answer.
func (a *rawAgent) ask(title string) {
	a.next++
	fmt.Printf(`{"jsonrpc":"2.0","id":"r%d","method":"session/request_permission","params":{"sessionId":"s1",`+
		`"toolCall":{"toolCallId":"call%d","title":%q,"kind":"edit","status":"pending"},`+
		`"options":[{"optionId":"y","name":"Allow","kind":"allow_once"},{"optionId":"n","name":"Reject","kind":"reject_once"}]}}`+"\n",
		a.next, a.next, title)
	for {
		if f, ok := a.read(); !ok || f.Method == "" {
			return
		}
	}
}

// turn holds a turn. It returns the answer, "" for the usual one.
func (a *rawAgent) turn() string {
	switch a.does {
	case "unannounced": // says nothing of a tool call but that it wants to make it
		a.say("I will use a tool. ")
		a.ask("Write x")
		a.say("Tool ")
		a.say("finished.")
	case "empty-chunk":
		a.say("Said.")
		a.update(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Look","kind":"read","status":"completed"}`)
		a.say("")
	case "empty-before": // between the tool call and the question about it
		a.say("First. ")
		a.update(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Look","kind":"read","status":"pending"}`)
		a.say("")
		a.ask("Look")
		a.say("Last.")
	case "garbage":
		for range 5 {
			fmt.Println("rubbish \x1b[31mred")
		}
		fmt.Println(strings.Repeat("x", 3000))
	case "noisy":
		fmt.Println("Update available")
		a.say("Said.")
	case "deep": // twice in a turn, then once in each
		fmt.Println("Update available")
		for range max(1, 2-a.turns) {
			a.update(`{"sessionUpdate":"agent_message_chunk","content":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`)
		}
		a.turns++
		a.say("Said.")
	case "silent":
		fmt.Fprintln(os.Stderr, "model: HTTP 400 \x1b[31mbad key")
	case "thinks":
		a.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`)
	case "acts":
		a.update(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Look","kind":"read","status":"completed"}`)
	case "ends-well": // in the turn
		fmt.Fprintln(os.Stderr, "fatal: cannot reach backend")
		os.Exit(0)
	case "closes-output":
		fmt.Fprintln(os.Stderr, "fatal: cannot reach backend")
		_ = os.Stdout.Close()
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		<-asked
		os.Exit(0)
	case "own-reason":
		a.say("Said.")
		return `"result":{"stopReason":"_tired"}`
	case "unknown-reason":
		a.say("Said.")
		return `"result":{"stopReason":"tool_error"}`
	case "null-error":
		a.say("Said.")
		return `"result":{"stopReason":"end_turn"},"error":null`
	case "misfits":
		a.update(`{"sessionUpdate":"agent_message_chunk","content":[{"type":"text","text":"The important answer."}]}`)
		a.update(`{"sessionUpdate":"agent_message_chunk","content":"Another one."}`)
		a.update(`{"sessionUpdate":"tool_call","toolCallId":"t","title":null,"kind":"edit","status":"completed"}`)
		a.say("Said.")
	case "misfits-vary":
		a.turns++
		update := map[int]string{1: `"agent_message_chunk","content":"Not text."`, 2: `"tool_call","toolCallId":"t","title":null`}[a.turns]
		if update != "" {
			a.update(`{"sessionUpdate":` + update + `}`)
			a.say("Said.")
		}
	case "details":
		return `"error":{"code":-32603,"message":"Internal error","data":{"details":"no key \u001b[31mfor the model"}}`
	case "nested":
		return `"error":{"code":-32603,"message":"Internal error","data":{"message":"{\"error\":{\"message\":\"the quota is used up\"}}"}}`
	default:
		a.say("Said.")
	}
	return ""
}

// list answers session/list: with what is in a directory, or with the latest of all directories.
func (a *rawAgent) list(f rawFrame) {
	switch {
	case a.does == "endless":
		a.answer(f, fmt.Sprintf(`"result":{"sessions":[{"sessionId":"again","cwd":%q}],"nextCursor":"c"}`, f.Params.Cwd))
	case f.Params.Cwd != "":
		a.answer(f, fmt.Sprintf(`"result":{"sessions":[{"sessionId":"in-here","cwd":%q}]}`, f.Params.Cwd))
	default:
		a.answer(f, `"result":{"sessions":[{"sessionId":"elsewhere","cwd":"/elsewhere"}]}`)
	}
}

// missing is the answer to loading a session that is not there.
func (a *rawAgent) missing(id string) string {
	switch a.does {
	case "missing-params":
		return fmt.Sprintf(`"error":{"code":-32602,"message":"Invalid params: Unknown sessionId: %s"}`, id)
	case "missing-details":
		return fmt.Sprintf(`"error":{"code":-32603,"message":"Internal error","data":{"details":"Invalid session identifier \"%s\". Searched for sessions in /x"}}`, id)
	case "missing-code":
		return `"error":{"code":-32002,"message":"Resource not found"}`
	case "missing-somehow":
		return `"error":{"code":-32603,"message":"Internal error"}`
	case "missing-login":
		return `"error":{"code":-32000,"message":"Authentication required"}`
	}
	return `"result":{}`
}
