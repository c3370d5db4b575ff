package acphttp

import "testing"

// TestGivenUpOnce: what is given up with a connection is not counted again when a reader gets it after that.
func TestGivenUpOnce(t *testing.T) {
	s := new(Server)
	s.init()
	c := newConn(s, "0123456789", "")
	if err := c.write([]byte(`{"method":"_x"}`)); err != nil {
		t.Fatal(err)
	}
	if got := s.held.bytes.Load(); got != int64(len(`{"method":"_x"}`)) {
		t.Errorf("%d bytes are held", got)
	}
	c.drop()
	c.mu.Lock()
	c.count(c.streams[""], new(reader), 1, len(`{"method":"_x"}`))
	c.mu.Unlock()
	if got := s.held.bytes.Load(); got != 0 || c.unsent != 0 || c.streams[""].unsent != 0 {
		t.Errorf("%d, %d and %d bytes are held afterwards", got, c.unsent, c.streams[""].unsent)
	}
}
