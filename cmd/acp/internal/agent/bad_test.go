package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/model/anthropic"
	"github.com/goacp/acp/cmd/acp/internal/model/openai"
	"github.com/goacp/acp/cmd/acp/internal/model/stream"
)

// TestBadInput: a tool answers every bad call with what is wrong in it, and the turn continues.
func TestBadInput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	for name, tc := range map[string]struct {
		use  string
		told []string
	}{
		"unknown tool":       {`use sudo {"command":"x"}`, []string{`There is no tool "sudo". The tools are: read, search`}},
		"not JSON":           {`use read {"path":`, []string{"The input is not JSON"}},
		"missing":            {`use read {}`, []string{`The input does not fit the schema of read: path is missing: write {"path":"FILE"`}},
		"wrong type":         {`use edit {"path":"main.go","edits":[{"old":"a","new":true}]}`, []string{`does not fit the schema of edit: edits[0].new is true, and no text: write `}},
		"one too many":       {`use read {"path":"main.go","because":"why"}`, []string{"package main"}},
		"another form":       {`use edit {"file_path":"main.go","old_string":"package nowhere","new_string":"package other"}`, []string{"the old text is not in the file"}},
		"invalid UTF-8":      {`use read {"path":"latin1.txt"}`, []string{"caf\uFFFD"}},
		"bytes":              {`use run {"command":"printf 'a\\377b'"}`, []string{"a\uFFFDb"}},
		"directory":          {`use edit {"path":"doc","edits":[{"old":"a","new":"b"}]}`, []string{"failed: `doc`"}},
		"write to directory": {`use write {"path":"doc","text":"x"}`, []string{"failed: `doc`"}},
		"no such file":       {`use edit {"path":"none.go","edits":[{"old":"a","new":"b"}]}`, []string{"there is no such file"}},
		"100 MB":             {`use run {"command":"head -c 100000000 /dev/zero | tr '\\0' 'x'; echo; echo the end"}`, []string{"xxx", "the end", "the beginning is lost", "more characters of line 1"}},
		"endless line":       {`use search {"pattern":"x+"}`, []string{"long.txt:1: xxx"}},
		"pipe":               {`use read {"path":"pipe"}`, []string{"failed: "}},
		"outside":            {`use read {"path":"` + `/dev/zero` + `"}`, []string{"failed: "}},
		"empty input":        {`use run {"command":""}`, []string{"is missing"}},
		"nobody can answer":  {`use ask {"question":"why?"}`, []string{`There is no tool "ask"`}},
		"address":            {`use fetch {"url":"http://169.254.169.254/latest"}`, []string{"failed: "}},
	} {
		t.Run(name, func(t *testing.T) {
			w, with := scripted(t, tc.use+"\n---\nsay I go on.")
			k := start(t, 2, with)
			k.write("latin1.txt", "caf\xe9\n")
			k.write("long.txt", strings.Repeat("x", 3<<20))
			k.tell("/mode full")
			k.tell("/run mkfifo pipe")
			contains(t, k.tell("Go."), "I go on.")
			told := w.last()
			contains(t, told, tc.told...)
			if len(told) > 60<<10 {
				t.Errorf("%d bytes", len(told))
			}
			strict(t, w.requests[len(w.requests)-1].Messages)
		})
	}
}

// TestFileChangesWhileRead: a file that another program writes all the time is read and
// edited without a torn result: an edit is made of what was read, or refused.
func TestFileChangesWhileRead(t *testing.T) {
	w, with := scripted(t, `
use read {"path":"busy.txt"}
---
use edit {"path":"busy.txt","edits":[{"old":"version","new":"VERSION"}]}
---
say I go on.`)
	k := start(t, 1, with)
	stop, stopped := make(chan struct{}), make(chan struct{})
	k.write("busy.txt", "version 0\n")
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				k.write("busy.txt", fmt.Sprintf("version %d\n", i))
			}
		}
	}()
	k.tell("/mode full")
	contains(t, k.tell("Go."), "I go on.")
	close(stop)
	<-stopped
	if told := w.last(); !strings.Contains(told, "Changed `busy.txt`") && !strings.Contains(told, "failed: ") {
		t.Error(told)
	}
}

// TestBadServices: a provider that cannot be used ends the turn with one clear line, and
// the session lives on.
func TestBadServices(t *testing.T) {
	serve := func(h http.HandlerFunc) func(t *testing.T) string {
		return func(t *testing.T) string {
			s := httptest.NewServer(h)
			t.Cleanup(s.Close)
			return s.URL
		}
	}
	refused := func(status int, body string) func(t *testing.T) string {
		return serve(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>Sign in</title>"+strings.Repeat("<p>Welcome", 10000))
	}
	for name, tc := range map[string]struct {
		at   func(t *testing.T) string
		want []string
	}{
		"HTML":       {serve(page), []string{"does not speak this interface"}},
		"wrong key":  {refused(401, `{"error":{"message":"invalid x-api-key"}}`), []string{"invalid x-api-key", "Check the key", "/key"}},
		"no credit":  {refused(402, `{"error":{"message":"pay first"}}`), []string{"pay first", "no credit"}},
		"no network": {func(t *testing.T) string { return closedPort(t) }, []string{"was not reached"}},
		"hangs up": {serve(func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}), []string{"was not reached"}},
		"500 page":  {refused(500, "<html>oops</html>"), []string{"500"}},
		"no stream": {refused(200, "{}"), []string{"does not speak this interface"}},
	} {
		for _, api := range []string{"messages", "responses", "chat"} {
			t.Run(name+" "+api, func(t *testing.T) {
				m := serviceModel(t, api, tc.at(t))
				k := start(t, 2, func(k *talk) { k.model = m })
				_, err := k.session.Prompt(t.Context(), acp.Text("Go.")).Wait()
				if err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 600 {
					t.Fatalf("%v", err)
				}
				contains(t, err.Error(), tc.want...)
				contains(t, k.tell("/help"), "/read")
			})
		}
	}
}

// serviceModel returns a model of an interface that asks a server once.
func serviceModel(t *testing.T, api, url string) model.Model {
	t.Helper()
	info := model.Info{Provider: "lab", ID: "some", Context: 100_000}
	client := stream.Client{Retries: -1}
	var m model.Model
	var err error
	switch api {
	case "messages":
		m, err = anthropic.New(anthropic.Config{Info: info, URL: url, Key: "secret-key", Client: client})
	case "responses":
		m, err = openai.NewResponses(openai.Config{Info: info, URL: url, Key: "secret-key", Client: client})
	default:
		m, err = openai.NewChat(openai.Config{Info: info, URL: url, Key: "secret-key", Client: client})
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// closedPort returns an address where nobody answers.
func closedPort(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return "http://" + l.Addr().String()
}

// TestRefusalTexts: what the model reads when something is not permitted is for the model: who
// said no, and what to do next. People read what they have done.
func TestRefusalTexts(t *testing.T) {
	const change = "use edit {\"path\":\"main.go\",\"edits\":[{\"old\":\"one\",\"new\":\"1\"}]}\n---\nsay I go on."
	for _, tc := range []struct {
		name, mode string
		answer     func(*acp.PermissionRequest) acp.PermissionDecision
		told, said string
	}{
		{"no", "ask", (*acp.PermissionRequest).Reject, "Not done: the user said no. Do something else", "you rejected it"},
		{"read-only", "read-only", nil, "Not done: the session is in read-only mode, in which you change nothing", "/mode ask"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, with := scripted(t, change)
			k := start(t, 2, with)
			if tc.answer != nil {
				k.answer = tc.answer
			}
			k.tell("/mode " + tc.mode)
			contains(t, k.tell("Go."), tc.said)
			contains(t, w.last(), tc.told)
			if strings.Contains(w.last(), tc.said) {
				t.Errorf("the model reads what is for people: %s", w.last())
			}
		})
	}
}

// TestInputsStay: an input that the schema allows is used as it is, byte for byte.
func TestInputsStay(t *testing.T) {
	for _, tc := range []struct{ tool, input string }{
		{"read", `{ "path" : "f", "from": 1 }`}, {"edit", `{"edits":[{"new":"<b>","old":"[\"a\"]"}],"path":"f"}`},
		{"run", `{"command":"[ -f x ] && echo \"[1]\""}`}, {"write", `{"text":"{\"a\":1}","path":"f"}`}, {"plan", `{"steps":[]}`},
		{"patch", `{"patch":"\"*** Begin Patch\""}`}, {"search", `{"pattern":"\u003c","glob":""}`},
	} {
		for _, tool := range modelTools() {
			if tool.Name != tc.tool {
				continue
			}
			if got, err := tool.read(&model.ToolUse{Input: json.RawMessage(tc.input)}); err != nil || string(got) != tc.input {
				t.Errorf("%s: %s became %s, %v", tc.tool, tc.input, got, err)
			}
		}
	}
}
