package export

import (
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/transcript"
)

// TestBlankMessages: messages in which the agent says nothing leave no entry.
func TestBlankMessages(t *testing.T) {
	c := transcript.New(transcript.Config{})
	c.Apply(&acp.AgentMessageChunk{MessageID: "1", Content: acp.Text("\n")})
	c.Apply(&acp.ToolCallUpdate{ToolCallID: "a", Title: acp.Set("Look")})
	c.Apply(&acp.AgentThoughtChunk{MessageID: "2", Content: acp.Text("")})
	c.Apply(&acp.AgentMessageChunk{MessageID: "3", Content: acp.Text("done")})
	var titles []string
	for _, it := range items(c.Snapshot()) {
		titles = append(titles, it.Title)
	}
	if got := strings.Join(titles, "|"); got != "Look|Agent" {
		t.Errorf("%q", got)
	}
}

// TestDecided: an export has who has allowed a tool call, and when.
func TestDecided(t *testing.T) {
	at := time.Date(2026, 11, 29, 6, 57, 0, 0, time.Local)
	c := transcript.New(transcript.Config{})
	c.Apply(&acp.ToolCallUpdate{ToolCallID: "a", Title: acp.Set("touch x")})
	d := history.Decision{By: "laptop", Kind: "allow_once", Outcome: "a", Time: at}
	c.Apply(&acp.ToolCallUpdate{ToolCallID: "a", Meta: d.Meta()})
	all := items(c.Snapshot())
	if len(all) != 1 || strings.Join(all[0].Notes, "|") != "Permission: allowed once by laptop, 2026-11-29 06:57" {
		t.Errorf("%+v", all)
	}
}
