package acp

import (
	"fmt"
	"testing"
)

// TestProxyForgets: beyond the bound a proxy forgets the session that was used last before all others, and not the one that
// was opened first.
func TestProxyForgets(t *testing.T) {
	n := newProxyNode(new(Proxy), nil, nil)
	st := n.state.Load()
	first := n.session("first")
	first.SetValue("kept")
	second := n.session("second")
	for i := range maxProxySessions - 2 {
		n.session(fmt.Sprint("s", i))
	}
	n.session("first")
	n.session("one too many")
	if got := n.session("first"); got != first || got.Value() != "kept" {
		t.Error("the session that is in use was forgotten")
	}
	if n.session("second") == second {
		t.Error("the session that was not used for longest is kept")
	}
	if len(st.sessions) != maxProxySessions || st.order.Len() != maxProxySessions {
		t.Errorf("%d sessions, %d in order", len(st.sessions), st.order.Len())
	}
	if st.forget("first") != first || st.forget("first") != nil || st.order.Len() != maxProxySessions-1 {
		t.Errorf("a session that was closed is kept, %d in order", st.order.Len())
	}
}
