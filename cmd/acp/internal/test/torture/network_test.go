//go:build unix

package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres/pgtest"
	"github.com/goacp/acp/internal/long"
)

// A network is what goes wrong between clients and the server: to requests, or to connections. random is theirs alone
// while they are called.
type network struct {
	name       string
	request    func(r *http.Request, random *rand.Rand) acptest.NetFault
	connection func(random *rand.Rand) breakage
}

// some returns a fault for one request in n, and otherwise none.
func some(random *rand.Rand, n int, f acptest.NetFault) acptest.NetFault {
	if random.IntN(n) != 0 {
		return acptest.NetFault{}
	}
	return f
}

// breaks returns what happens to all connections, in either direction.
func breaks(how breaking) func(random *rand.Rand) breakage {
	return func(random *rand.Rand) breakage {
		return breakage{
			how: how, back: random.IntN(2) == 0, after: random.Int64N(4 << 10),
			hold: time.Duration(20+random.IntN(100)) * time.Millisecond,
		}
	}
}

var networks = []network{
	{name: "requests are delayed", request: func(_ *http.Request, random *rand.Rand) acptest.NetFault {
		return some(random, 2, acptest.NetFault{Delay: time.Duration(random.IntN(10)) * time.Millisecond})
	}},
	{name: "requests come twice", request: func(r *http.Request, random *rand.Rand) acptest.NetFault {
		return some(random, 2, acptest.NetFault{Twice: r.Method == http.MethodPost})
	}},
	{name: "requests are refused", request: func(_ *http.Request, random *rand.Rand) acptest.NetFault {
		return some(random, 4, acptest.NetFault{Refuse: http.StatusServiceUnavailable})
	}},
	{name: "requests are refused for a second", request: func(_ *http.Request, random *rand.Rand) acptest.NetFault {
		return some(random, 8, acptest.NetFault{Refuse: http.StatusTooManyRequests, RetryAfter: time.Second})
	}},
	{name: "a request arrives and is answered with 502", request: func(r *http.Request, random *rand.Rand) acptest.NetFault {
		if r.Header.Get("Upgrade") != "" {
			return some(random, 2, acptest.NetFault{Break: acptest.Cut, After: random.Int64N(10 << 10)})
		}
		return some(random, 4, acptest.NetFault{Replace: http.StatusBadGateway})
	}},
	{name: "a request arrives and its answer does not", request: func(_ *http.Request, random *rand.Rand) acptest.NetFault {
		return some(random, 4, acptest.NetFault{Break: acptest.Cut})
	}},
	{name: "answers are cut", request: func(_ *http.Request, random *rand.Rand) acptest.NetFault {
		return acptest.NetFault{Break: acptest.Cut, After: 1 + random.Int64N(10<<10)}
	}},
	{name: "answers end early", request: func(_ *http.Request, random *rand.Rand) acptest.NetFault {
		return acptest.NetFault{Break: acptest.EarlyStop, After: 1 + random.Int64N(10<<10)}
	}},
	{name: "answers come in pieces", request: func(_ *http.Request, random *rand.Rand) acptest.NetFault {
		return acptest.NetFault{Piece: 1 + random.IntN(3000), Pause: time.Millisecond}
	}},
	{name: "connections are reset", connection: breaks(reset)},
	{name: "one direction of a connection is closed", connection: breaks(half)},
	{name: "one direction of a connection is silent, until it is reset", connection: breaks(silent)},
	{name: "one direction of a connection is held for a while", connection: breaks(delayed)},
	{name: "all of this", request: func(_ *http.Request, random *rand.Rand) acptest.NetFault {
		f := some(random, 3, acptest.NetFault{Break: acptest.Cut, After: random.Int64N(10 << 10)})
		f.Twice = random.IntN(4) == 0
		if random.IntN(8) == 0 {
			f.Replace = http.StatusGatewayTimeout
		}
		return f
	}, connection: func(random *rand.Rand) breakage {
		b := breaks(reset + breaking(random.IntN(4)))(random)
		return b
	}},
}

// A faulty is the network between clients and a server. Once it is calm, nothing happens any more to what it carries.
type faulty struct {
	url   string
	wire  *wire
	calm  atomic.Bool
	count atomic.Int64 // of faulty requests
}

// newFaulty puts a network in front of the server at a URL.
func newFaulty(t *testing.T, n network, server string) *faulty {
	t.Helper()
	f := new(faulty)
	random := func() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
	requests, connections := random(), random()
	target, path, _ := strings.Cut(strings.TrimPrefix(server, "http://"), "/")
	transport := new(http.Transport)
	proxy := httptest.NewServer(&acptest.FaultProxy{Target: "http://" + target, Transport: transport, Fault: func(r *http.Request, number int) acptest.NetFault {
		if n.request == nil || f.calm.Load() {
			return acptest.NetFault{}
		}
		fault := n.request(r, requests)
		for draws := 1; number >= 8 && f.count.Load() == 0 && fault == (acptest.NetFault{}) && draws < 100; draws++ {
			fault = n.request(r, requests) // or a short test might see none
		}
		if fault != (acptest.NetFault{}) {
			f.count.Add(1)
		}
		return fault
	}})
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
		transport.CloseIdleConnections()
	})
	f.wire = newWire(t, strings.TrimPrefix(proxy.URL, "http://"), func() breakage {
		if n.connection == nil {
			return breakage{}
		}
		return n.connection(connections)
	})
	f.url = "http://" + f.wire.Addr() + "/" + path
	return f
}

// quiet ends all faults.
func (f *faulty) quiet() {
	f.calm.Store(true)
	f.wire.calm.Store(true)
}

// happened returns how many faults there were.
func (f *faulty) happened() int { return int(f.count.Load() + f.wire.count.Load()) }

// prompts returns how many each client sends while the network is faulty.
func prompts(t *testing.T) int {
	if s := os.Getenv("NETWORK_PROMPTS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 1
}

// TestNetwork: whatever the network does, each record is seen exactly once and in order by every client, each prompt
// runs once and is answered so, and each question has one decision. Clients are those of the library, of both versions,
// over HTTP and WebSockets; the log is SQLite's and PostgreSQL's.
func TestNetwork(t *testing.T) {
	long.Test(t)
	t.Run("SQLite", func(t *testing.T) { testNetworks(t, func(int) string { return "" }) })
	t.Run("PostgreSQL", func(t *testing.T) {
		if testing.Short() {
			t.Skip("with one database the network fails in all ways as well")
		}
		db := pgtest.New(t)
		t.Cleanup(db.Remove)
		db.Init(t)
		db.Start(t)
		testNetworks(t, func(i int) string { // servers that shared one would be nodes
			name := fmt.Sprint("acp", i)
			db.Query(t, "postgres", "CREATE DATABASE "+name)
			return fmt.Sprintf("postgres:///%s?user=acp&sslmode=disable&host=%s", name, url.QueryEscape(db.Dir()))
		})
	})
}

// testNetworks has each network fail, with a database of its own.
func testNetworks(t *testing.T, database func(i int) string) {
	for i, n := range networks {
		db := database(i)
		t.Run(n.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			r := newRigAt(t, db)
			r.begin()
			direct, err := os.ReadFile(r.urls())
			if err != nil {
				t.Fatal(err)
			}
			s := &summary{Kind: n.name, Engine: t.Name()[len("TestNetwork/"):strings.LastIndex(t.Name(), "/")]}
			start := time.Now()
			net := newFaulty(t, n, strings.TrimSpace(string(direct)))
			r.lead(net.url)
			ctx, cancel := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			defer clients.Wait()
			defer cancel()
			each := prompts(t)
			for i, name := range []string{"http1", "http2", "ws1", "ws2"} {
				r.run(ctx, &clients, &watcher{
					Name: name, Version: 1 + i%2, WS: i >= 2, Load: i%3 == 0, Prompts: true, Retry: true, Most: each, Tag: name + "-",
				})
			}
			ended := func() (n int) {
				for _, name := range r.names {
					for _, e := range r.events[name] {
						if e.Kind == evEnd {
							n++
						}
					}
				}
				return n
			}
			r.until("all prompts", func() bool { return ended() == each*len(r.names) })
			net.quiet()
			if s.Faults = net.happened(); s.Faults == 0 {
				t.Error("nothing has happened to the network")
			}
			// Its last operation does not pass through the network.
			r.lead(string(direct))
			last := &watcher{Name: "prompter", Version: 2, Load: true, Session: r.session, Cwd: r.home, URLs: r.urls(), Prompts: true, sink: func(e event) { r.add("prompter", e) }}
			last.done.Store(true)
			if err := last.run(ctx); err != nil {
				t.Fatal(err)
			}
			r.seenBy(cancel, &clients)
			s.Seconds = time.Since(start).Seconds()
			r.check(s)
			if s.Cut > 0 || s.Unknown > 0 {
				t.Errorf("%d prompts were cut, of %d nobody knows: %q", s.Cut, s.Unknown, s.Errors)
			}
			if want := each*len(r.names) + 1; s.Ended != want {
				t.Errorf("%d prompts of %d have ended", s.Ended, want)
			}
			report(t, s, "NETWORK_REPORT")
		})
	}
}
