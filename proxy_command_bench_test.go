package acp

import (
	"context"
	"os"
	"testing"

	"github.com/goacp/acp/jsonrpc"
)

// relayCommand is a transport through a process that only copies lines: what the agent
// writes passes it, as it passes a proxy that is a command.
type relayCommand struct{ agent Transport }

func (r relayCommand) Open(ctx context.Context) (jsonrpc.Stream, error) {
	agent, err := r.agent.Open(ctx)
	if err != nil {
		return nil, err
	}
	process, err := benchCommand("relay").Open(ctx)
	if err != nil {
		return nil, err
	}
	s := &relayStream{Stream: process, agent: agent, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for {
			f, err := agent.ReadFrame()
			if err != nil || process.WriteFrame(f.Data) != nil {
				return
			}
		}
	}()
	return s, nil
}

// relayStream reads from the process and writes to the agent.
type relayStream struct {
	jsonrpc.Stream
	agent jsonrpc.Stream
	done  chan struct{}
}

func (s *relayStream) WriteFrame(data []byte) error { return s.agent.WriteFrame(data) }

func (s *relayStream) Close() error {
	_ = s.agent.Close()
	<-s.done
	return s.Stream.Close()
}

// benchCommand is this program in another role.
func benchCommand(role string) *CommandTransport {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c := Command(program)
	c.Env = append(os.Environ(), "ACP_TEST_PROXY="+role)
	return c
}

// BenchmarkProxyCommands compares, side by side and in alternating windows, chains of one and
// three proxies that are commands with as many processes that only copy lines.
func BenchmarkProxyCommands(b *testing.B) {
	const window = 2000
	for _, n := range []int{1, 3} {
		b.Run(map[int]string{1: "1", 3: "3"}[n], func(b *testing.B) {
			relay := newFlow(b, func(t Transport) Transport {
				for range n {
					t = relayCommand{t}
				}
				return t
			})
			defer relay.end()
			chain := newFlow(b, func(t Transport) Transport {
				c := &Conductor{Agent: Component{Transport: t}}
				for range n {
					c.Proxies = append(c.Proxies, Component{Transport: benchCommand("1")})
				}
				return openFunc(func(ctx context.Context) (jsonrpc.Stream, error) {
					theirs, ours := jsonrpc.Pipe()
					go func() { _ = c.Serve(context.WithoutCancel(ctx), Over(theirs)) }()
					return ours, nil
				})
			})
			defer chain.end()
			for _, f := range []*flow{relay, chain} {
				f.window(window)
				f.time, f.wall, f.heap, f.n = 0, 0, 0, 0
			}
			for b.Loop() {
				relay.window(window)
				chain.window(window)
			}
			b.ReportMetric(float64(relay.wall)/float64(relay.n), "ns/relayed")
			b.ReportMetric(float64(chain.wall)/float64(relay.wall), "x-relay")
			b.ReportMetric(0, "ns/op")
		})
	}
}
