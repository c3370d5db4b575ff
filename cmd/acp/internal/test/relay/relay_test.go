package relay

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// echo accepts connections and sends back what comes.
func echo(t *testing.T) string {
	t.Helper()
	r, err := Listen(func() (net.Conn, error) {
		a, b := net.Pipe()
		go func() {
			defer a.Close()
			_, _ = io.Copy(a, a)
		}()
		return b, nil
	}, Copy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.Addr()
}

// TestRelay: what is sent comes back until the network is down, and again after it is up; then everything ends.
func TestRelay(t *testing.T) {
	target := echo(t)
	r, err := Listen(func() (net.Conn, error) { return net.Dial("tcp", target) }, Copy)
	if err != nil {
		t.Fatal(err)
	}
	open := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	passes := func(c net.Conn) error {
		_, _ = io.WriteString(c, "hello\n")
		_, err := bufio.NewReader(c).ReadString('\n')
		return err
	}
	first := open()
	if err := passes(first); err != nil {
		t.Fatal(err)
	}
	r.Set(true)
	if err := passes(first); err == nil {
		t.Error("a connection outlives the network")
	}
	if err := passes(open()); err == nil {
		t.Error("one was opened while it was down")
	}
	r.Set(false)
	last := open()
	if err := passes(last); err != nil {
		t.Error(err)
	}
	r.Close()
	if err := passes(last); err == nil {
		t.Error("a connection outlives the relay")
	}
}

// TestNowhere: a connection whose far end cannot be dialled ends.
func TestNowhere(t *testing.T) {
	r, err := Listen(func() (net.Conn, error) { return nil, errors.New("nowhere") }, Copy)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("something came")
	}
}
