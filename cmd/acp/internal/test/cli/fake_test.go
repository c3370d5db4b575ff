package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/test/replay"
	"github.com/goacp/acp/jsonrpc"
)

// fakeAgent is the program fake-agent: its first argument says how it behaves, -v1 and -v2 which
// version it speaks.
func fakeAgent() {
	agent := &acp.Agent{Info: acp.Implementation{Name: "fake", Version: "1.2.3"}}
	mode, arg := "ok", ""
	for _, a := range os.Args[1:] {
		switch {
		case a == "-v1":
			agent.MaxVersion = 1
		case a == "-v2":
			agent.MinVersion = 2
		default:
			mode, arg, _ = strings.Cut(a, "=")
		}
	}
	os.Exit(behave(agent, mode, arg))
}

// answer answers initialize with the rest of a response, and then nothing.
func answer(rest string) {
	in := bufio.NewReader(os.Stdin)
	line, _ := in.ReadBytes('\n')
	var req struct{ ID json.RawMessage }
	if json.Unmarshal(line, &req) == nil {
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", req.ID, rest)
	}
	_, _ = in.ReadString(0)
}

// blockName says what a block is.
func blockName(b acp.ContentBlock) string {
	base := func(uri string) string { return uri[strings.LastIndexByte(uri, '/')+1:] }
	switch b := b.(type) {
	case *acp.TextContent:
		return "text " + strconv.Quote(b.Text)
	case *acpv2.SkillReference:
		return "skill " + b.Name
	case *acp.ImageContent:
		return fmt.Sprintf("image %s, %d bytes in base64, %s", b.MIMEType, len(b.Data), base(b.URI))
	case *acp.ResourceLink:
		return fmt.Sprintf("link %s, %s, %s", b.Name, b.MIMEType, base(b.URI))
	case *acp.EmbeddedResource:
		switch r := b.Resource.(type) {
		case *acpv2.TextResourceContents:
			return fmt.Sprintf("embedded %s: %q", base(r.URI), r.Text)
		case *acpv2.BlobResourceContents:
			return fmt.Sprintf("embedded %s: %d bytes in base64", base(r.URI), len(r.Blob))
		}
	}
	return fmt.Sprintf("%T", b)
}

func behave(agent *acp.Agent, mode, arg string) int {
	agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, t.Say("You said: " + t.Text())
	}
	says := func(stop acp.StopReason) {
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			return stop, t.Say("partial")
		}
	}
	switch mode {
	case "replays":
		if err := replay.Serve(arg, os.Getenv("HOME"), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "ok":
	case "proxy":
		return fakeProxy(arg)
	case "raw":
		rawAgentMain(arg)
		return 0
	case "exit-at-once":
		fmt.Fprintln(os.Stderr, "fatal: no license found")
		return 3
	case "noise":
		fmt.Println("Welcome to fake agent!")
		fmt.Println("\x1b[31mred\x1b[0m {not json")
	case "only-noise":
		fmt.Println("Usage: fake-agent [options]")
		return 0
	case "silent":
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
		return 0
	case "http":
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Print("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\nbad request\n")
		return 0
	case "lsp":
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		body := `{"jsonrpc":"2.0","id":0,"error":{"code":-32002,"message":"server not initialized"}}`
		fmt.Printf("Content-Length: %d\r\n\r\n%s", len(body), body)
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
		return 0
	case "future":
		answer(`"result":{"protocolVersion":9}`)
		return 0
	case "closed":
		answer(`"error":{"code":-32050,"message":"closed today"}`)
		return 0
	case "talker": // answers what it does not know
		agent.Extensions = func(mux *jsonrpc.Mux) {
			mux.Fallback(func(context.Context, *jsonrpc.Request) (any, error) { return struct{}{}, nil })
		}
	case "crash":
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			_ = t.Say("half an ans")
			// The client has the text before the process is gone.
			if _, err := t.Ask(acp.Permission{Title: "Crash?"}); err != nil {
				return "", err
			}
			fmt.Fprintln(os.Stderr, "panic: out of cheese")
			os.Exit(42)
			return "", nil
		}
	case "crash-silent": // before it has said anything
		agent.Prompt = func(context.Context, *acp.Turn) (acp.StopReason, error) {
			fmt.Fprintln(os.Stderr, "ValueError: boom")
			os.Exit(3)
			return "", nil
		}
	case "auth":
		agent.AuthMethods = []acp.AuthMethod{&acpv2.UnknownAuthMethod{Type: "env_var", Raw: []byte(`{"type":"env_var","methodId":"key","name":"API key","vars":[{"name":"FAKE_API_KEY"}]}`)}}
		agent.Login = func(context.Context, *acp.AgentConn, acp.AuthMethodID) error { return nil }
		agent.NewSession = func(context.Context, *acp.AgentSession) error {
			if os.Getenv("FAKE_API_KEY") == "" {
				return errAuth
			}
			return nil
		}
	case "account": // keeps its login in a file
		file := os.Getenv("HOME") + "/fake-login"
		agent.AuthMethods = []acp.AuthMethod{&acp.AuthMethodAgent{MethodID: "web", Name: "With a browser"}}
		agent.Login = func(context.Context, *acp.AgentConn, acp.AuthMethodID) error { return os.WriteFile(file, nil, 0o600) }
		agent.Logout = func(context.Context, *acp.AgentConn) error { return os.Remove(file) }
		agent.NewSession = func(context.Context, *acp.AgentSession) error {
			if _, err := os.Stat(file); err != nil {
				return errAuth
			}
			return nil
		}
	case "fail":
		agent.Prompt = func(context.Context, *acp.Turn) (acp.StopReason, error) {
			return "", &acp.Failure{Code: -32050, Message: "the model is \x1b[5moverloaded", Reason: "rate_limit"}
		}
	case "until": // a file is there; its first words are a file, too
		agent.Prompt = func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			_ = t.Say("one ")
			_ = os.WriteFile("began", nil, 0o600)
			for ctx.Err() == nil {
				if _, err := os.Stat("go"); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			return acp.StopEndTurn, t.Say("two")
		}
	case "steered": // by what is sent while the turn runs, until that is "stop"
		agent.Busy = acp.BusySteer
		agent.Prompt = func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			_ = t.Say("one")
			t.EndMessage()
			_ = os.WriteFile("began", nil, 0o600)
			for t.Text() == "first" {
				select {
				case blocks := <-t.Steering():
					text := blocks[0].(*acp.TextContent).Text
					_ = t.Say("heard " + text)
					t.EndMessage()
					if text == "stop" {
						return acp.StopEndTurn, nil
					}
				case <-ctx.Done():
					return acp.StopCancelled, nil
				}
			}
			return acp.StopEndTurn, nil
		}
	case "slow-turn":
		agent.Prompt = func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			_ = t.Say(fmt.Sprintf("working %d\n", os.Getpid()))
			<-ctx.Done()
			return acp.StopCancelled, nil
		}
	case "ignore-cancel":
		agent.CancelGrace = 1 << 40
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			_ = t.Say(fmt.Sprintf("working %d\n", os.Getpid()))
			select {}
		}
	case "options":
		optionsMode(agent, arg)
	case "skills": // says what the prompt is made of, and has skills
		agent.Content = acp.PromptContent{Skill: true, SkillInline: arg == "inline"}
		agent.NewSession = func(_ context.Context, s *acp.AgentSession) error {
			return s.SetSkills(acpv2.Skill{Name: "review", Description: "reviews a change", Path: "/s/SKILL.md"})
		}
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			for _, b := range t.Blocks() {
				if err := t.Say(blockName(b) + "\n"); err != nil {
					return "", err
				}
			}
			return acp.StopEndTurn, nil
		}
	case "whole": // says as many MiB in one update
		n, _ := strconv.Atoi(arg)
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, t.Say(strings.Repeat("0123456789abcde\n", n<<16))
		}
	case "deaf": // does not end when its input does
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, t.Say("done")
		}
		_ = agent.Serve(context.Background(), acp.Stdio())
		select {}
	case "big":
		n, _ := strconv.Atoi(arg)
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			piece := strings.Repeat("0123456789abcde\n", 4096)
			for sent := 0; sent < n<<20; sent += len(piece) {
				if err := t.Say(piece); err != nil {
					return "", err
				}
			}
			return acp.StopEndTurn, t.Say("the end")
		}
	case "flood":
		n, _ := strconv.Atoi(arg)
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			for i := range n {
				if err := t.Say(strconv.Itoa(i) + "\n"); err != nil {
					return "", err
				}
			}
			return acp.StopEndTurn, nil
		}
	case "cancels": // a turn that nobody has asked it to
		says(acp.StopCancelled)
	case "refuse":
		says(acp.StopRefusal)
	case "max-tokens":
		says(acp.StopMaxTokens)
	case "max-requests":
		says(acp.StopMaxTurnRequests)
	case "env": // says its environment
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, t.Say(strings.Join(os.Environ(), "\n"))
		}
	case "blocks": // says what the prompt is made of
		agent.Content = acp.PromptContent{Image: true, EmbeddedContext: true}
		if arg == "links" {
			agent.Content = acp.PromptContent{}
		}
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			for _, b := range t.Blocks() {
				if err := t.Say(blockName(b) + "\n"); err != nil {
					return "", err
				}
			}
			return acp.StopEndTurn, nil
		}
	case "mcp": // uses the MCP servers of its session, of which it takes those of one transport
		agent.MCP = acp.MCPTransports{Stdio: arg == "stdio", HTTP: arg == "http"}
		agent.Prompt = func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			for _, s := range t.Session().MCPServers() {
				if err := t.Say(greetings(ctx, s) + "\n"); err != nil {
					return "", err
				}
			}
			return acp.StopEndTurn, nil
		}
	case "hostile":
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			_ = t.Say("a\x1b]0;ow")
			_ = t.Say("ned\x07b\x1b[2Jc\u009b31md\u202e")
			return acp.StopEndTurn, nil
		}
	case "edit", "run":
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			call := acp.ToolCall{Title: "Write notes.txt", Kind: acp.ToolKindEdit,
				Locations: []acp.ToolCallLocation{{Path: t.Session().Cwd() + "/notes.txt"}}}
			if mode == "run" {
				call = acp.ToolCall{Title: "Run the tests", Kind: acp.ToolKindExecute, Input: map[string]string{"command": "go test ./..."}}
			}
			h := t.ToolCall(call)
			d, err := h.Ask(acp.Permission{})
			if err != nil {
				return "", err
			}
			if !d.Allowed {
				_ = h.Fail(errors.New("not permitted"))
				return acp.StopEndTurn, t.Say("I was not allowed to.")
			}
			_ = h.Complete()
			return acp.StopEndTurn, t.Say("I did it.")
		}
	case "form":
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			low := int64(1)
			answer, err := t.Elicit(acp.FormRequest{Message: "Which colour?", Schema: acp.ElicitationSchema{
				Properties: []acp.ElicitationProperty{
					{Name: "colour", Schema: &acpv2.StringPropertySchema{Title: "Colour", Enum: []string{"red", "green"}}},
					{Name: "count", Schema: &acpv2.IntegerPropertySchema{Title: "Count", Minimum: &low}},
				},
				Required: []string{"colour"},
			}})
			switch {
			case err != nil:
				return acp.StopEndTurn, t.Say("no forms here")
			case answer.Declined:
				return acp.StopEndTurn, t.Say("You declined.")
			case !answer.Accepted:
				return acp.StopEndTurn, t.Say("You dismissed it.")
			}
			return acp.StopEndTurn, t.Say(fmt.Sprintf("You want %s of %s.", answer.Content["count"], answer.Content["colour"]))
		}
	case "cost":
		amount, _ := strconv.ParseFloat(arg, 64)
		agent.Prompt = func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			_ = t.Usage(100, 1000, &acp.Cost{Amount: amount, Currency: "USD"})
			if amount < 1 {
				return acp.StopEndTurn, t.Say("cheap")
			}
			<-ctx.Done()
			return acp.StopCancelled, nil
		}
	case "think":
		agent.Prompt = func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			_ = t.Think("Let me see.")
			h := t.ToolCall(acp.ToolCall{Title: "Read main.go", Kind: acp.ToolKindRead})
			_ = h.Complete()
			_ = t.Say("First. ")
			_ = t.Say("Second.")
			return acp.StopEndTurn, nil
		}
	default:
		if !guardMode(agent, mode) {
			fmt.Fprintln(os.Stderr, "fake-agent: unknown mode", mode)
			return 99
		}
	}
	if err := agent.Serve(context.Background(), acp.Stdio()); err != nil {
		if errors.Is(err, syscall.EPIPE) {
			return 0
		}
		fmt.Fprintln(os.Stderr, "fake-agent:", err)
		return 1
	}
	return 0
}
