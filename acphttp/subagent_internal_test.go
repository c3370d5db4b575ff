package acphttp

import (
	"fmt"
	"testing"
)

// TestChildren: subagents are forgotten when the session ends that they belong to, and those that are known can be
// announced again, however many there are.
func TestChildren(t *testing.T) {
	s := new(Server)
	s.init()
	c := newConn(s, "0123456789", "")
	announce := func(session, child string) {
		data := fmt.Appendf(nil, `{"method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"subagent_update","sessionId":%q}}}`, session, child)
		h, ok := peek(data)
		if !ok {
			t.Fatal("no message")
		}
		c.adopt(&h, session, data)
	}
	expect := func(child, stream string) {
		t.Helper()
		if got := c.streamOf(child); got != stream {
			t.Errorf("%s goes to %q, want %q", child, got, stream)
		}
	}
	for i := range maxChildren {
		announce("first", fmt.Sprint("child ", i))
	}
	announce("second", "further")
	expect("further", "further")
	announce("second", "child 0")
	expect("child 0", "second")
	c.asked["1"] = asked{methodClose, "first"}
	if err := c.WriteFrame([]byte(`{"id":1,"result":{}}`)); err != nil {
		t.Fatal(err)
	}
	expect("child 0", "second")
	expect("child 1", "child 1")
	announce("second", "further")
	expect("further", "second")
	c.drop()
	if n := len(c.routes.children); n != 0 {
		t.Errorf("%d are left", n)
	}
}
