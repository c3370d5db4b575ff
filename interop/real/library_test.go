package real

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/internal/standin"
)

// A peer is a connection of package acp to a real agent.
type peer struct {
	place   *place
	standin *standin.Server
	agent   agent
	version string
	command []string
	env     []string
	wrap    func(acp.Transport) acp.Transport
	client  *acp.Client
	conn    *acp.ClientConn

	mu       sync.Mutex
	allow    bool
	asked    []string // titles of what it wanted permission for
	replayed []string // what users and agents said in a history
	heard    string   // all that they said
	stderr   lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// dial prepares a home for an agent, with a stand-in for its model, and connects.
func dial(t *testing.T, a agent, version int) *peer {
	t.Helper()
	return dialWrapped(t, a, version, func(tr acp.Transport) acp.Transport { return tr })
}

// dialWrapped is dial through another transport.
func dialWrapped(t *testing.T, a agent, version int, wrap func(acp.Transport) acp.Transport) *peer {
	t.Helper()
	p := &peer{place: newPlace(t, a.name), agent: a, wrap: wrap}
	var log io.Writer
	if os.Getenv(keepVar) != "" {
		f, err := os.Create(filepath.Join(p.place.home, "..", "model.log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		log = f
	}
	p.standin = standin.New(standin.Options{Tools: a.toolsIn(p.place.work), Log: log})
	t.Cleanup(p.standin.Close)
	p.env = append(slices.Clone(p.place.env), a.configure(t, p.place, p.standin.URL)...)
	p.command, p.version = a.command(t)
	p.client = &acp.Client{
		Info:       acp.Implementation{Name: "acp-real", Version: "1"},
		Terminals:  func(*acp.ClientConn) acp.TerminalHost { return acphost.Local(p.place.work) },
		MinVersion: version, MaxVersion: version,
		RequestPermission: func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.asked = append(p.asked, r.Title)
			if p.allow {
				return r.Allow(), nil
			}
			return r.Reject(), nil
		},
		Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			p.mu.Lock()
			defer p.mu.Unlock()
			text := spoken(u)
			p.heard += text
			if u.Replayed {
				p.replayed = append(p.replayed, text)
			}
		},
	}
	if !a.noFiles {
		p.client.Files = acphost.Dir(p.place.work)
	}
	p.connect(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("requests to the model: %q\nstderr:\n%s", p.standin.Requests(), tail(p.stderr.String()))
		}
	})
	return p
}

// tail returns the end of a text.
func tail(s string) string { return s[max(0, len(s)-4000):] }

// connect starts the agent, perhaps once more.
func (p *peer) connect(t *testing.T) {
	t.Helper()
	tr := acp.Command(p.command[0], p.command[1:]...)
	tr.Dir, tr.Env, tr.Stderr = p.place.work, p.env, &p.stderr
	conn, err := p.client.Connect(limited(t), p.wrap(tr))
	if err != nil {
		t.Fatal(err)
	}
	p.conn = conn
	t.Cleanup(func() {
		_ = conn.Close()
		p.place.gone(t)
	})
}

// open begins a session.
func (p *peer) open(t *testing.T) *acp.ClientSession {
	t.Helper()
	s, err := p.conn.NewSession(limited(t), acp.SessionConfig{Cwd: p.place.work})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// toolsIn makes the files absolute that tools write.
func (a agent) toolsIn(work string) standin.Tools {
	return func(verb, rest string, offered []string) (standin.Call, error) {
		if verb == "write" {
			rest = filepath.Join(work, rest)
		}
		return a.tools(verb, rest, offered)
	}
}

// spoken returns what a user or an agent says in an update.
func spoken(u *acp.Update) string {
	var c acp.ContentBlock
	switch v := u.Update.(type) {
	case *acp.UserMessageChunk:
		c = v.Content
	case *acp.AgentMessageChunk:
		c = v.Content
	case *acp.UserMessage:
		if blocks := v.Content.Or(nil); len(blocks) > 0 {
			c = blocks[0]
		}
	}
	if t, ok := c.(*acp.TextContent); ok {
		return t.Text
	}
	return ""
}

// A turn is one that has ended.
type turn struct {
	said  string
	tools []string // each tool call's last state
	stop  acp.StopReason
	err   error
}

// say has a turn. The hook, if any, sees what was said so far.
func say(t *testing.T, s *acp.ClientSession, prompt string, hook func(said string)) turn {
	t.Helper()
	reply := s.Prompt(limited(t), acp.Text(prompt))
	var out turn
	state := map[acp.ToolCallID]*[4]string{}
	var order []acp.ToolCallID
	for u, err := range reply.Updates() {
		if err != nil {
			out.err = err
			break
		}
		if text := u.Text(); text != "" {
			out.said += text
			if hook != nil {
				hook(out.said)
			}
		}
		if c, ok := u.Update.(*acp.ToolCallUpdate); ok {
			if state[c.ToolCallID] == nil {
				state[c.ToolCallID] = new([4]string)
				order = append(order, c.ToolCallID)
			}
			for i, v := range []string{string(c.Kind.Or("")), string(c.Status.Or("")), c.Title.Or("")} {
				if v != "" {
					state[c.ToolCallID][i] = v
				}
			}
		}
	}
	if res, err := reply.Wait(); err != nil {
		out.err = err
	} else {
		out.stop = res.StopReason
	}
	for _, id := range order {
		out.tools = append(out.tools, strings.TrimSpace(strings.Join(state[id][:], " ")))
	}
	t.Logf("%s\n  said %q tools %q stop %s err %v", prompt, out.said, out.tools, out.stop, out.err)
	return out
}

func (p *peer) permit(allow bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allow, p.asked = allow, nil
}

func (p *peer) wanted() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// each runs a test with every agent, in every version it speaks.
func each(t *testing.T, test func(t *testing.T, a agent, version int)) {
	need(t)
	for _, a := range agents {
		for _, v := range a.versions {
			t.Run(fmt.Sprintf("%s v%d", a.name, v), func(t *testing.T) { test(t, a, v) })
		}
	}
}

// Agents say what they are, speak the version that was agreed on, and end without
// a trace.
func TestInitialize(t *testing.T) {
	need(t)
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			p := dial(t, a, 0)
			if got := p.conn.Agent(); got.Name != a.title || got.Version != p.version {
				t.Errorf("it is %s %s, want %s %s", got.Name, got.Version, a.title, p.version)
			}
			if v := p.conn.Version(); v != slices.Max(a.versions) {
				t.Errorf("it speaks version %d, want %d", v, slices.Max(a.versions))
			}
			caps, _ := json.Marshal(p.conn.Capabilities())
			methods, _ := json.Marshal(p.conn.AuthMethods())
			t.Logf("version %d\ncapabilities %s\nlogin %s", p.conn.Version(), caps, methods)
			options, _ := json.Marshal(p.open(t).Options())
			t.Logf("options %s", options)
		})
	}
}

// A turn: text, tools with and without permission, a turn that is cancelled and
// one that goes on after it.
func TestTurns(t *testing.T) {
	each(t, func(t *testing.T, a agent, version int) {
		p := dial(t, a, version)
		s := p.open(t)
		t.Run("text", func(t *testing.T) {
			if got := say(t, s, "standin: say one two three", nil); !strings.Contains(got.said, "one two three") || got.stop != acp.StopEndTurn {
				t.Errorf("%+v", got)
			}
		})
		for _, tool := range []struct{ verb, prompt string }{
			{"write", "standin: write %s.txt hello"},
			{"run", "standin: run echo hello > %s.txt"},
		} {
			t.Run(tool.verb+" rejected", func(t *testing.T) {
				p.permit(false)
				name := tool.verb + "-rejected"
				got := say(t, s, fmt.Sprintf(tool.prompt, name), nil)
				if len(p.wanted()) == 0 {
					t.Error("it asked for no permission")
				}
				if text := p.place.file(name + ".txt"); text != "" {
					t.Errorf("it wrote %q all the same", text)
				}
				if got.err != nil {
					t.Error(got.err)
				}
			})
			t.Run(tool.verb+" allowed", func(t *testing.T) {
				p.permit(true)
				name := tool.verb + "-allowed"
				got := say(t, s, fmt.Sprintf(tool.prompt, name), nil)
				if len(p.wanted()) == 0 {
					t.Error("it asked for no permission")
				}
				if text := p.place.file(name + ".txt"); text != "hello" {
					t.Errorf("the file says %q", text)
				}
				if !strings.Contains(got.said, "the tool said") || got.stop != acp.StopEndTurn || got.err != nil {
					t.Errorf("%+v", got)
				}
			})
		}
		t.Run("cancelled", func(t *testing.T) {
			var once sync.Once
			got := say(t, s, "standin: wait", func(said string) {
				once.Do(func() {
					go func() {
						if err := s.Cancel(t.Context()); err != nil {
							t.Error(err)
						}
					}()
				})
			})
			if got.stop != acp.StopCancelled || got.err != nil {
				t.Errorf("%+v", got)
			}
		})
		t.Run("after it", func(t *testing.T) {
			if got := say(t, s, "standin: say four five", nil); !strings.Contains(got.said, "four five") || got.stop != acp.StopEndTurn {
				t.Errorf("%+v", got)
			}
		})
		t.Logf("requests to the model: %q", p.standin.Requests())
	})
}

// Sessions are listed and go on in another process of the agent.
func TestSessions(t *testing.T) {
	each(t, func(t *testing.T, a agent, version int) {
		p := dial(t, a, version)
		s := p.open(t)
		if got := say(t, s, "standin: say remember me", nil); got.err != nil {
			t.Fatal(got.err)
		}
		if err := p.conn.Close(); err != nil {
			t.Logf("close: %v", err)
		}
		p.place.gone(t)
		if a.later != nil {
			a.later(t, p.place)
		}
		p.connect(t)
		var listed []acp.SessionID
		for i, err := range p.conn.ListSessions(limited(t), acp.ListOptions{Cwd: p.place.work}) {
			if err != nil {
				if !a.noList || !errors.Is(err, errors.ErrUnsupported) {
					t.Error(err)
				}
				break
			}
			listed = append(listed, i.SessionID)
		}
		if slices.Contains(listed, s.ID()) == a.noList {
			t.Errorf("listed %q; the session is %s", listed, s.ID())
		}
		p.mu.Lock()
		p.heard = ""
		p.mu.Unlock()
		again, how, err := p.conn.Restore(limited(t), s.ID(), acp.SessionConfig{Cwd: p.place.work, Replay: true})
		if err != nil {
			t.Fatal(err)
		}
		told := func() (replayed, heard string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return strings.Join(p.replayed, "|"), p.heard
		}
		replayed, _ := told()
		t.Logf("%v; told %q", how, replayed)
		if strings.Contains(replayed, "remember me") == a.lateHistory || how != acp.RestoredLoaded {
			t.Errorf("the session is %v and its history %q", how, replayed)
		}
		if a.lateHistory {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for end := time.Now().Add(goneLimit); ; <-tick.C {
				if _, heard := told(); strings.Count(heard, "remember me") == 2 {
					break
				} else if time.Now().After(end) {
					t.Fatalf("all it told is %q", heard)
				}
			}
		}
		if got := say(t, again, "standin: history", nil); got.said != "before: say remember me" {
			t.Errorf("%+v", got)
		}
	})
}

// Gemini CLI asks the client for a file before it writes it, and does not
// understand the answer that there is none: with files lent to it, it can change
// files but not create any. When this test fails, noFiles can go.
func TestGeminiFiles(t *testing.T) {
	need(t)
	a := agents[0]
	a.noFiles = false
	p := dial(t, a, 1)
	s := p.open(t)
	p.permit(true)
	if got := say(t, s, "standin: write new.txt hello", nil); !strings.Contains(got.said, "Error checking existing file: Resource not found") || p.place.file("new.txt") != "" {
		t.Errorf("it creates files: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(p.place.work, "old.txt"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := say(t, s, "standin: write old.txt hello", nil); p.place.file("old.txt") != "hello" {
		t.Errorf("%+v", got)
	}
}
