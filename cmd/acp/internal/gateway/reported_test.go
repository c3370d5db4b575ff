package gateway

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/transcript"
)

// TestReportedTerminal: a command that an agent of version 1 reports in the metadata of its tool call is a terminal to every
// client that shows terminals: as it runs, and to one that comes later.
func TestReportedTerminal(t *testing.T) {
	all := scenes(1)
	p := &play{version: 1, scenes: all, view: newView(all)}
	r := newRig(t, p.agent())
	r.max = 1
	var ends []chan struct{} // of each client, closed once the call has ended
	shown := func() (*transcript.Conversation, func(*acp.Client)) {
		v, end := newView(nil), make(chan struct{})
		ends = append(ends, end)
		return v.said, func(c *acp.Client) {
			c.ShowsTerminals, c.Update = true, func(ctx context.Context, s *acp.ClientSession, u *acp.Update) {
				v.update(ctx, s, u)
				if call, ok := u.Update.(*acp.ToolCallUpdate); ok && call.Status.Or("") == acp.ToolCallStatusFailed {
					close(end)
				}
			}
		}
	}
	entries := func(c *transcript.Conversation) (list []string) {
		for e := range c.Snapshot().Entries() {
			switch e := e.(type) {
			case *transcript.Terminal:
				raw, err := json.Marshal(e.Update())
				if err != nil {
					t.Error(err)
				}
				list = append(list, string(raw))
			case *transcript.ToolCall:
				raw, err := json.Marshal(e.Content)
				if err != nil {
					t.Error(err)
				}
				list = append(list, e.Title+" "+string(e.Status)+" "+string(raw))
			}
		}
		return list
	}
	views := make(map[string]*transcript.Conversation)
	var first *acp.ClientSession
	for name, version := range map[string]int{"version 1": 1, "version 2": 2} {
		v, change := shown()
		c := r.connect(version, change)
		if first == nil {
			first = c.new(t)
		} else {
			c.load(t, first.ID())
		}
		views["live, "+name] = v
	}
	for _, s := range all {
		if s.name == "tool: command" {
			say(t, first, s.name)
		}
	}
	for name, version := range map[string]int{"version 1": 1, "version 2": 2} {
		v, change := shown()
		r.connect(version, change).load(t, first.ID())
		views["loaded, "+name] = v
	}
	for _, end := range ends {
		<-end
	}
	want := entries(p.view.said)
	if len(want) != 2 {
		t.Fatalf("the agent said %q", want)
	}
	number := func(list []string) []string {
		return each(list, func(s string) string { return idIn.ReplaceAllString(s, `$1"`) })
	}
	for name, v := range views {
		if diff := cmp.Diff(number(want), number(entries(v))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
