package trace

import (
	"testing"

	"github.com/goacp/acp/trace"
)

// TestMeterStart: an agent that is started again answers nothing that the one
// before was asked.
func TestMeterStart(t *testing.T) {
	m := new(meter)
	start := &trace.Record{Kind: trace.Event, Name: "start"}
	for i, rec := range []*trace.Record{
		start, {Dir: trace.ToAgent, Data: []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)},
		start, {Dir: trace.ToClient, Data: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)},
	} {
		m.addRecord(rec, int64(i+1))
	}
	c := m.calls("initialize", trace.ToAgent)
	if c.unanswered != 1 || c.answers.n != 0 {
		t.Errorf("%d requests were not answered, %d were", c.unanswered, c.answers.n)
	}
}
