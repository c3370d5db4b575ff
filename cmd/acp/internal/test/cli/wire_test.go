package cli

import (
	"net"
	"net/url"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goacp/acp/cmd/acp/internal/test/relay"
)

type wireKey struct{}

// wired is the command wire: it has what is said to the server NAME pass through a network that can break, and sets NAME
// and what follows from it to the address there. With -cut, connections end, and further ones do; with -mend no more.
func wired(ts *testscript.TestScript, neg bool, args []string) {
	all, _ := ts.Value(wireKey{}).(map[string]*relay.Relay)
	if neg || len(args) == 0 || all == nil {
		ts.Fatalf("usage: wire [-cut | -mend] NAME")
	}
	name := args[len(args)-1]
	switch w := all[name]; {
	case len(args) == 2 && w != nil && args[0] == "-cut":
		w.Set(true)
	case len(args) == 2 && w != nil && args[0] == "-mend":
		w.Set(false)
	case len(args) == 1 && w == nil:
		u, err := url.Parse(ts.Getenv(name))
		ts.Check(err)
		target := u.Host
		w, err := relay.Listen(func() (net.Conn, error) { return net.Dial("tcp", target) }, relay.Copy)
		ts.Check(err)
		ts.Defer(w.Close)
		all[name] = w
		u.Host = w.Addr()
		setAddress(ts, name, u.String())
	default:
		ts.Fatalf("usage: wire [-cut | -mend] NAME")
	}
}
