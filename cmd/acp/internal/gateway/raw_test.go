package gateway

import (
	"context"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// TestRawOf: who owns a session gets its records without secrets, without what others have entered, and without who
// they are beyond what everybody sees. What is about the agent that runs, of the wrong form, or of a kind that this
// version does not know is left out.
func TestRawOf(t *testing.T) {
	for _, tt := range []struct {
		kind engine.Kind
		data string
		want string // "" if there is nothing
	}{
		{kindUpdate, `{"update":{"x":1},"e":3}`, `{"update":{"x":1},"e":3}`},
		{kindPrompt, `{"id":"p","by":"bob@example.org","from":"Bob","op":"o","content":{"sessionId":"","prompt":[{"type":"text","text":"x"}]}}`, `{"id":"p","from":"Bob","content":`},
		{kindPrompt, `{"id":"p","by":"bob","content":{"sessionId":"","prompt":[{"type":"text","text":"x"}]}}`, `{"id":"p","from":"bob","content":`},
		{kindPrompt, `{`, ``},
		{kindAsk, `{"id":"q","title":"T","raw":{"id":1},"e":3,"w":2}`, `{"id":"q","title":"T"}`},
		{kindAnswer, `{"id":"q","by":"bob@example.org","from":"Bob","key":"K","outcome":"accepted","content":{"password":"s3cret"}}`, `{"id":"q","outcome":"accepted","from":"Bob"}`},
		{journal.KindSession, `{"agent":"a","owner":"ann","state":"idle","attributes":{"mcp":[{"env":"s3cret"}]}}`, `{"agent":"a","state":"idle"}`},
		{journal.KindSession, `{"created":"nonsense"}`, ``},
		{kindSent, `{"frame":1}`, ``},
		{kindShare, `{"user":"bob"}`, ``},
		{"newer", `{}`, ``},
	} {
		u, err := rawOf("s", &engine.Record{Kind: tt.kind, Data: []byte(tt.data)})
		got := ""
		if u != nil {
			got = string(u.Record.Data)
		}
		if err != nil || (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %s: %s, %v", tt.kind, tt.data, got, err)
		}
	}
}

// TestRawRole: only who may do everything with a session gets its records.
func TestRawRole(t *testing.T) {
	r := newRig(t, talking(nil))
	c := r.connect(2)
	s := c.new(t)
	say(t, s, "one")
	who := Who{User: local, Role: RoleOwner, Rights: MayPrompt | MayApprove}
	for _, may := range []bool{true, false} {
		if !may {
			who.Rights &^= MayPrompt
		}
		r.g.cfg.Who = func(context.Context) Who { return who }
		res, err := HistoryMethod.Call(t.Context(), c.conn.Conn(), &HistoryRequest{SessionID: s.ID(), Raw: true})
		if err != nil || len(res.Updates) == 0 {
			t.Fatal(res, err)
		}
		if got := res.Updates[0].Record != nil; got != may {
			t.Errorf("who may prompt: %t, gets records: %t", may, got)
		}
	}
}
