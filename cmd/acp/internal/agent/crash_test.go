package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/anthropic"
	"github.com/goacp/acp/cmd/acp/internal/model/ollama"
	"github.com/goacp/acp/cmd/acp/internal/model/openai"
	scripts "github.com/goacp/acp/cmd/acp/internal/model/script"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/jsonrpc"
)

// These make the test binary another program.
const (
	serveVariable  = "ACP_TEST_SERVE"  // the agent, with its directory
	scriptVariable = "ACP_TEST_SCRIPT" // what the model of the agent says
	tryVariable    = "ACP_TEST_TRY"    // opens a session and says how that went
	apiVariable    = "ACP_TEST_API"    // an interface and its base URL
	mcpVariable    = "ACP_TEST_MCP"    // an MCP server
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveVariable); dir != "" {
		o := Options{Dir: dir}
		var err error
		if at := os.Getenv(apiVariable); at != "" {
			var m model.Model
			m, err = modelAt(at)
			o.Models = fixed{m: m}
		}
		if file := os.Getenv(scriptVariable); file != "" {
			var m model.Model
			m, err = scripts.Read(file)
			o.Models = fixed{m: m}
		}
		var a *acp.Agent
		if err == nil {
			a, err = New(o)
		}
		if err == nil {
			err = a.Serve(context.Background(), acp.Stdio())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(tryVariable); dir != "" {
		if _, err := stored(dir).open("s1", nil); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("opened")
		}
		os.Exit(0)
	}
	if mode := os.Getenv(mcpVariable); mode != "" {
		serveMCP(mode)
		os.Exit(0)
	}
	leaktest.Main(m)
}

// modelAt returns a model behind an interface, as in "messages http://127.0.0.1:1".
func modelAt(at string) (model.Model, error) {
	api, url, _ := strings.Cut(at, " ")
	info := model.Info{Provider: "fake", ID: "m", Name: "m", Context: 200_000, Parallel: true, Images: true, Efforts: []string{"high"}}
	client := stream.Client{Retries: -1}
	switch api {
	case "messages":
		return anthropic.New(anthropic.Config{Info: info, URL: url, Key: "key-of-a-test", Client: client})
	case "ollama":
		return ollama.New(ollama.Config{Info: info, URL: url, Client: client})
	case "openai":
		return openai.NewChat(openai.Config{Info: info, URL: url + "/v1", Key: "key-of-a-test", Client: client, Dialect: openai.Dialects["openai"]})
	case "patches": // with a tool that takes a text
		info.Edit, info.Texts = model.EditPatch, true
		fallthrough
	case "responses":
		return openai.NewResponses(openai.Config{Info: info, URL: url + "/v1", Key: "key-of-a-test", Client: client})
	}
	return openai.NewChat(openai.Config{Info: info, URL: url + "/v1", Key: "key-of-a-test", Client: client})
}

func self(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// process starts the agent as a process of its own.
func (k *talk) process() {
	k.t.Helper()
	transport := acp.Command(self(k.t))
	transport.Env = append(os.Environ(), serveVariable+"="+k.dir, scriptVariable+"="+k.scriptFile, apiVariable+"="+k.api)
	conn, err := k.client.Connect(k.t.Context(), transport)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = conn.Close() })
	k.conn = conn
}

// TestKilled kills the agent while it works and compares what it tells afterwards
// with what was shown.
func TestKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	for _, prompt := range []string{
		"/demo flood 1000000",
		"/run echo $PPID > agent.pid; i=0; while :; do i=$((i+1)); echo line $i; done",
	} {
		versions(t, func(t *testing.T, v int) {
			var mu sync.Mutex
			var shown strings.Builder
			collect := false
			k := start(t, v, func(k *talk) {
				k.client.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
					mu.Lock()
					defer mu.Unlock()
					if collect {
						shown.WriteString(said(u))
					}
				}
			})
			k.process()
			k.open()
			k.tell("/mode auto")
			k.tell("/run echo $PPID > parent.pid")
			id := k.session.ID()
			mu.Lock()
			collect = true
			mu.Unlock()
			reply := k.session.Prompt(t.Context(), acp.Text(prompt))
			wait(t, func() bool { mu.Lock(); defer mu.Unlock(); return shown.Len() > 20_000 })
			if v == 1 && strings.HasPrefix(prompt, "/run") {
				// What version 1 shows of a command is its end each time.
				mu.Lock()
				shown.Reset()
				mu.Unlock()
			}
			kill(t, k.agentPID())
			if _, err := reply.Wait(); err == nil {
				t.Error("the turn ended well")
			}
			mu.Lock()
			was := shown.String()
			shown.Reset()
			mu.Unlock()

			k.process()
			s, err := k.conn.Load(t.Context(), id, acp.SessionConfig{Cwd: k.cwd})
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			told := shown.String()
			collect = false
			mu.Unlock()
			if v == 2 || strings.HasPrefix(prompt, "/demo") {
				if !strings.Contains(told, was) {
					t.Errorf("of %d bytes that were shown not all are told again, %d bytes: …%q, …%q", len(was), len(told), tail(was), tail(told))
				}
			}
			k.session = s
			if got := s.Title(); got != "/mode auto" {
				t.Errorf("title %q", got)
			}
			res, err := s.Prompt(t.Context(), acp.Text("/usage")).Wait()
			if err != nil || res.StopReason != acp.StopEndTurn {
				t.Errorf("the session does not go on: %v", err)
			}
			if err := k.conn.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func tail(text string) string { return text[max(0, len(text)-60):] }

// said is what the agent and its commands say in an update.
func said(u *acp.Update) string {
	switch v := u.Update.(type) {
	case *acp.TerminalOutputChunk:
		data, _ := v.Bytes()
		return string(data)
	case *acp.AgentMessageChunk:
		return u.Text()
	case *acp.ToolCallUpdate:
		var b strings.Builder
		for _, c := range v.Content.Or(nil) {
			if c, ok := c.(*acp.BlockContent); ok {
				b.WriteString(blockText(c.Content))
			}
		}
		return b.String()
	}
	return ""
}

// agentPID finds the agent: its commands are started by it.
func (k *talk) agentPID() string {
	k.t.Helper()
	data, err := os.ReadFile(filepath.Join(k.cwd, "parent.pid"))
	if err != nil {
		k.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// TestLeft closes the input of the agent while it works: it has to end by itself.
func TestLeft(t *testing.T) {
	for _, prompt := range []string{"", "/demo slow", "/run sleep 60", "/demo flood 1000000"} {
		cmd := exec.Command(self(t))
		cmd.Env = append(os.Environ(), serveVariable+"="+t.TempDir())
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		conn, err := (&acp.Client{MaxVersion: 2, RequestPermission: acptest.AcceptAll}).Connect(t.Context(), acp.Over(jsonrpc.NewLineStream(stdout, stdin)))
		if err != nil {
			t.Fatal(err)
		}
		if prompt != "" {
			s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			for u, err := range s.Prompt(t.Context(), acp.Text(prompt)).Updates() {
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := u.Update.(*acp.TerminalUpdate); ok || u.Text() != "" {
					break
				}
			}
		}
		_ = conn.Close() // the streams only
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v", prompt, err)
		}
	}
}
