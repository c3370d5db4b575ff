package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
)

// TestVendorMeta: a gateway passes the metadata of updates and of the end of a turn that it does not know, live and from its
// log, and keeps to its bound.
func TestVendorMeta(t *testing.T) {
	const call, usage, quota = `"vendor":[1.0,{"a":"b"}]`, `"_claude/rateLimit":{"status":"rejected"}`, `"quota":{"token_count":null,"model_usage":[]}`
	for agent := 1; agent <= 2; agent++ {
		for version := 1; version <= 2; version++ {
			r := newRig(t, &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
				meta := `{` + quota + `}`
				if strings.Contains(t.Text(), "much") {
					meta = `{"x":"` + strings.Repeat("x", maxEndMeta) + `"}`
				}
				t.SetAnswerMeta(json.RawMessage(meta))
				_ = t.Send(&acp.ToolCallUpdate{ToolCallID: "c", Title: acp.Set("T"), Meta: json.RawMessage(`{` + call + `}`)})
				return acp.StopEndTurn, t.Send(&acp.UsageUpdate{Used: 1, Size: 2, Meta: json.RawMessage(`{` + usage + `}`)})
			}})
			r.max = agent
			var mu sync.Mutex
			var seen strings.Builder
			note := func(c *acp.Client) {
				c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
					mu.Lock()
					defer mu.Unlock()
					switch v := u.Update.(type) {
					case *acp.ToolCallUpdate:
						seen.Write(v.Meta)
					case *acp.UsageUpdate:
						seen.Write(v.Meta)
					}
				}
			}
			check := func(how string) {
				t.Helper()
				mu.Lock()
				defer mu.Unlock()
				if got := seen.String(); !strings.Contains(got, call) || !strings.Contains(got, usage) {
					t.Errorf("agent %d, client %d, %s: %s", agent, version, how, got)
				}
				seen.Reset()
			}
			s := r.connect(version, note).new(t)
			res := say(t, s, "x")
			if !strings.Contains(string(res.Meta), quota) {
				t.Errorf("agent %d, client %d: the end has %s", agent, version, res.Meta)
			}
			check("live")
			if res := say(t, s, "much"); len(res.Meta) > maxEndMeta {
				t.Errorf("the end has %d bytes of metadata", len(res.Meta))
			}
			mu.Lock()
			seen.Reset()
			mu.Unlock()
			r.connect(version, note).load(t, s.ID())
			check("loaded")
		}
	}
}

// TestUsageAfter: what an update of the usage leaves out of the metadata stays for those who come later, within a bound.
func TestUsageAfter(t *testing.T) {
	big := `{"x":"` + strings.Repeat("x", maxEndMeta) + `"}`
	for _, tt := range [][3]string{
		{`{"limit":1,"k":2}`, `{"k":3}`, `{"k":3,"limit":1}`}, {`{"limit":1}`, ``, `{"limit":1}`}, {``, `{"k":3}`, `{"k":3}`}, {``, ``, ``},
		{`{"limit":1}`, big, big}, {`[`, `{"k":1}`, `{"k":1}`},
	} {
		got := usageAfter(&acp.UsageUpdate{Meta: json.RawMessage(tt[0])}, &acp.UsageUpdate{Meta: json.RawMessage(tt[1])})
		if string(got.Meta) != tt[2] {
			t.Errorf("%s and %.50s: %.50s", tt[0], tt[1], got.Meta)
		}
	}
}
