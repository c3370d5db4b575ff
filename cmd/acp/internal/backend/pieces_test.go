package backend

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
)

// TestPieces holds where messages of agents end that do not say which message a piece is of.
func TestPieces(t *testing.T) {
	piece := func(id acp.MessageID) *acp.Update {
		return &acp.Update{
			Update: &acp.AgentMessageChunk{MessageID: id, Content: acp.Text("x")},
			V1:     &acpv1.SessionNotification{Update: &acpv1.AgentMessageChunk{}},
		}
	}
	told := &acp.Update{
		Update: &acp.AgentMessageChunk{MessageID: "told", Content: acp.Text("x")},
		V1:     &acpv1.SessionNotification{Update: &acpv1.AgentMessageChunk{MessageID: "told"}},
	}
	other := func(u acp.SessionUpdate) *acp.Update { return &acp.Update{Update: u} }
	tool := other(&acp.ToolCallUpdate{ToolCallID: "c"})
	plan := other(&acp.PlanUpdate{Plan: &acp.PlanItems{PlanID: "p"}})
	asked := (*acp.Update)(nil)
	for _, tt := range []struct {
		name string
		in   []*acp.Update
		want string // the ids of the pieces
	}{
		{"in a row", []*acp.Update{piece("1"), piece("1"), piece("1")}, "1 1 1"},
		{"a question", []*acp.Update{piece("1"), asked, piece("1"), piece("1")}, "1 p1-1 p1-1"},
		{"two questions", []*acp.Update{piece("1"), asked, piece("1"), asked, asked, piece("1")}, "1 p1-1 p2-1"},
		{"a question first", []*acp.Update{asked, piece("1"), piece("1")}, "1 1"},
		{"another message", []*acp.Update{piece("1"), asked, piece("2"), piece("2")}, "1 2 2"},
		{"a tool call", []*acp.Update{piece("1"), tool, piece("1"), tool, piece("1")}, "1 p1-1 p1-1"},
		{"a plan that goes on", []*acp.Update{plan, piece("1"), plan, piece("1")}, "1 1"},
		{"a notice each time", []*acp.Update{piece("1"), other(&acp.Notice{}), piece("1"), other(&acp.Notice{}), piece("1")}, "1 p1-1 p2-1"},
		{"settings", []*acp.Update{piece("1"), other(&acp.UsageUpdate{}), other(&acp.ConfigOptionUpdate{}), piece("1")}, "1 1"},
		{"ids of the agent", []*acp.Update{told, asked, told}, "told told"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p pieces
			var got []string
			for _, u := range tt.in {
				if u == nil {
					p.End()
					continue
				}
				prefix := p.take(u)
				if c, ok := u.Update.(*acp.AgentMessageChunk); ok {
					got = append(got, prefix+string(c.MessageID))
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStderrSince holds that the reason of one turn is not that of another.
func TestStderrSince(t *testing.T) {
	w := &stderrLines{note: func(Note) {}}
	_, _ = w.Write([]byte("of the start\n"))
	mark := w.mark()
	if got := w.since(mark, 0); got != "" {
		t.Errorf("told %q of before", got)
	}
	done := make(chan string)
	go func() { done <- w.since(mark, stderrWait*1000) }()
	_, _ = w.Write([]byte("of the turn\n"))
	if got := <-done; got != "of the turn" {
		t.Errorf("told %q", got)
	}
}
