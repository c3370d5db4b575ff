package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// A shown is what a user has seen of a turn.
type shown struct {
	Said  string
	Plan  []acp.PlanEntryStatus
	Calls map[string]call // by title
	Asked []string
	Stop  acp.StopReason
}

type call struct {
	Status acp.ToolCallStatus
	Diff   bool
}

// ask connects to the agent, prompts it once in a session and collects what it
// shows. The answer to permissions is decide's.
func ask(t *testing.T, client acp.Client, dir string, decide func(*acp.PermissionRequest) acp.PermissionDecision) shown {
	t.Helper()
	s := shown{Calls: map[string]call{}}
	client.RequestPermission = func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		s.Asked = append(s.Asked, req.Title)
		return decide(req), nil
	}
	agentSide, clientSide := acp.Pipe()
	served, err := agent.Connect(t.Context(), agentSide)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.Connect(t.Context(), clientSide)
	if err != nil {
		t.Fatal(err)
	}
	session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	reply := session.Prompt(t.Context(), acp.Text("apples"))
	titles := map[acp.ToolCallID]string{}
	for u, err := range reply.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		s.add(titles, u.Update)
	}
	result, err := reply.Wait()
	if err != nil {
		t.Fatal(err)
	}
	s.Stop = result.StopReason
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := served.Wait(); err != nil {
		t.Error(err)
	}
	return s
}

func (s *shown) add(titles map[acp.ToolCallID]string, u acp.SessionUpdate) {
	content := func(id acp.ToolCallID, list ...acp.ToolCallContent) {
		c := s.Calls[titles[id]]
		for _, part := range list {
			if _, ok := part.(*acp.Diff); ok {
				c.Diff = true
			}
		}
		s.Calls[titles[id]] = c
	}
	switch u := u.(type) {
	case *acp.AgentMessageChunk:
		s.Said += u.Content.(*acp.TextContent).Text
	case *acp.PlanUpdate:
		s.Plan = nil
		for _, e := range u.Plan.(*acp.PlanItems).Entries {
			s.Plan = append(s.Plan, e.Status)
		}
	case *acp.ToolCallUpdate:
		titles[u.ToolCallID] = u.Title.Or(titles[u.ToolCallID])
		c := s.Calls[titles[u.ToolCallID]]
		c.Status = u.Status.Or(c.Status)
		s.Calls[titles[u.ToolCallID]] = c
		content(u.ToolCallID, u.Content.Or(nil)...)
	case *acp.ToolCallContentChunk:
		content(u.ToolCallID, u.Content)
	}
}

// editor has one file, of which its user has changed the text.
type editor struct{ written map[string]string }

func (e editor) ReadTextFile(_ context.Context, r *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	text, ok := e.written[r.Path]
	if !ok {
		return nil, jsonrpc.ErrResourceNotFound
	}
	return &acpv1.ReadTextFileResponse{Content: text}, nil
}

func (e editor) WriteTextFile(_ context.Context, r *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	e.written[r.Path] = r.Content
	return &acpv1.WriteTextFileResponse{}, os.WriteFile(r.Path, []byte(r.Content), 0o600)
}

// TestTools: the user sees the same, whatever the version, and whether the file
// is the client's or on disk.
func TestTools(t *testing.T) {
	allow := func(r *acp.PermissionRequest) acp.PermissionDecision { return r.Allow() }
	reject := func(r *acp.PermissionRequest) acp.PermissionDecision { return r.Reject() }
	done, pending, working := acp.PlanEntryStatusCompleted, acp.PlanEntryStatusPending, acp.PlanEntryStatusInProgress
	agreed := shown{
		Said: "Your notes are now:\napples\npears\n",
		Plan: []acp.PlanEntryStatus{done, done},
		Calls: map[string]call{
			"Write notes.txt": {Status: acp.ToolCallStatusCompleted, Diff: true},
			"Sort notes.txt":  {Status: acp.ToolCallStatusCompleted},
		},
		Asked: []string{"Write notes.txt"},
		Stop:  acp.StopEndTurn,
	}
	fresh := agreed
	fresh.Said = "Your notes are now:\napples\n"
	declined := shown{
		Said:  "I wrote nothing: the user declined",
		Plan:  []acp.PlanEntryStatus{working, pending},
		Calls: map[string]call{"Write notes.txt": {Status: acp.ToolCallStatusFailed, Diff: true}},
		Asked: []string{"Write notes.txt"},
		Stop:  acp.StopEndTurn,
	}
	for _, version := range []int{1, 2} {
		t.Run("v"+strconv.Itoa(version), func(t *testing.T) {
			client := acp.Client{MinVersion: version, MaxVersion: version}
			for _, test := range []struct {
				name   string
				decide func(*acp.PermissionRequest) acp.PermissionDecision
				before string // what notes.txt holds; "" if there is none
				want   shown
				after  string
			}{
				{"allowed", allow, "pears\n", agreed, "pears\napples\n"},
				{"new file", allow, "", fresh, "apples\n"},
				{"rejected", reject, "pears\n", declined, "pears\n"},
			} {
				t.Run(test.name, func(t *testing.T) {
					dir := t.TempDir()
					file := filepath.Join(dir, "notes.txt")
					if test.before != "" {
						if err := os.WriteFile(file, []byte(test.before), 0o600); err != nil {
							t.Fatal(err)
						}
					}
					if diff := cmp.Diff(test.want, ask(t, client, dir, test.decide)); diff != "" {
						t.Error(diff)
					}
					after, err := os.ReadFile(file)
					if err != nil || string(after) != test.after {
						t.Errorf("notes.txt holds %q, %v", after, err)
					}
				})
			}
		})
	}
	t.Run("v1, lent files", func(t *testing.T) {
		dir := t.TempDir()
		files := editor{map[string]string{}}
		client := acp.Client{MaxVersion: 1, Files: files}
		if diff := cmp.Diff(fresh, ask(t, client, dir, allow)); diff != "" {
			t.Error(diff)
		}
		files.written[filepath.Join(dir, "notes.txt")] = "pears\n" // not saved
		if diff := cmp.Diff(agreed, ask(t, client, dir, allow)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nothing to sort with", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		got := ask(t, acp.Client{}, t.TempDir(), allow)
		if !strings.HasPrefix(got.Said, "I could not sort the notes: ") || got.Calls["Sort notes.txt"].Status != acp.ToolCallStatusFailed {
			t.Errorf("%+v", got)
		}
	})
}
