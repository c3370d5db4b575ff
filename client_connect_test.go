package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// clientDialer is a transport whose streams lead to scripted agents.
type clientDialer struct {
	t       *testing.T
	agents  []*clientScript
	reopens bool
}

func (d *clientDialer) Open(context.Context) (jsonrpc.Stream, error) {
	if len(d.agents) > 0 && !d.reopens {
		return nil, ErrReopen
	}
	ours, theirs := jsonrpc.Pipe()
	d.agents = append(d.agents, newClientScript(d.t, ours))
	return theirs, nil
}

// TestClientNegotiation holds how the client comes by a version (S49–S51, S59,
// S61, S65). Each step is what the agent answers to one initialize.
func TestClientNegotiation(t *testing.T) {
	const (
		v1 = `"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}`
		v2 = `"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{}}`
	)
	tests := []struct {
		name     string
		min, max int
		first    int
		answers  []string
		asked    string // versions
		opens    int
		version  int
		err      string
	}{
		{name: "version 2", answers: []string{v2}, asked: "2", opens: 1, version: 2},
		{name: "version 1 only", max: 1, answers: []string{v1}, asked: "1", opens: 1, version: 1},
		{name: "answers version 1", answers: []string{v1, v1}, asked: "2 1", opens: 2, version: 1},
		{name: "spelled 1.0", answers: []string{strings.Replace(v1, "1,", "1.0,", 1), v1}, asked: "2 1", opens: 2, version: 1},
		{name: "wants members of version 1", answers: []string{`"error":{"code":-32602,"message":"x"}`, v1}, asked: "2 1", opens: 2, version: 1},
		{name: "fails", answers: []string{`"error":{"code":-32603,"message":"x"}`, v1}, asked: "2 1", opens: 2, version: 1},
		{name: "supports 1", answers: []string{`"error":{"code":-32022,"message":"x","data":{"requested":2,"supported":[1]}}`, v1}, asked: "2 1", opens: 2, version: 1},
		{name: "does not say what it supports", answers: []string{`"error":{"code":-32022,"message":"x"}`, v1}, asked: "2 1", opens: 2, version: 1},
		{name: "supports 3", answers: []string{`"error":{"code":-32022,"message":"x","data":{"supported":[3]}}`}, asked: "2", opens: 1, err: "initialize: x (-32022)"},
		{name: "wants a login", answers: []string{`"error":{"code":-32000,"message":"x"}`}, asked: "2", opens: 1, err: "initialize: x (-32000)"},
		{name: "does not understand", answers: []string{`"error":{"code":400,"message":"x"}`, v1}, asked: "2 1", opens: 2, version: 1},
		{name: "is too busy", answers: []string{`"error":{"code":500,"message":"x"}`}, asked: "2", opens: 1, err: "initialize: x (500)"},
		{name: "fails in both", answers: []string{`"error":{"code":-32602,"message":"x"}`, `"error":{"code":-32603,"message":"y"}`}, asked: "2 1", opens: 2,
			err: "initialize: x (-32602); in version 1: acp: initialize: y (-32603)"},
		{name: "changes its mind", answers: []string{v1, v2}, asked: "2 1", opens: 2, err: "version 2 instead of 1"},
		{name: "above", answers: []string{`"result":{"protocolVersion":3}`}, asked: "2", opens: 1, err: "protocol version 3; this client speaks 1 to 2"},
		{name: "above the highest", max: 1, answers: []string{v2}, asked: "1", opens: 1, err: "protocol version 2; this client speaks 1 to 1"},
		{name: "below the lowest", min: 2, answers: []string{v1}, asked: "2", opens: 1, err: "protocol version 1; this client speaks 2 to 2"},
		{name: "refuses below the lowest", min: 2, answers: []string{`"error":{"code":-32602,"message":"x"}`}, asked: "2", opens: 1, err: "x (-32602)"},
		{name: "no info", answers: []string{`"result":{"protocolVersion":2,"capabilities":{}}`}, asked: "2", opens: 1, err: "info: missing"},
		{name: "repeats version 2 in the shape of version 1", answers: []string{strings.Replace(v1, "1,", "2,", 1), v1}, asked: "2 1", opens: 2, version: 1},
		{name: "repeats version 2 and its name", answers: []string{`"result":{"protocolVersion":2,"agentInfo":{"name":"a","version":"1"}}`, v1},
			asked: "2 1", opens: 2, version: 1},
		{name: "repeats version 2 and nothing else", answers: []string{`"result":{"protocolVersion":2}`, v1}, asked: "2 1", opens: 2, version: 1},
		{name: "repeats every version", answers: []string{`"result":{"protocolVersion":2}`, `"error":{"code":-32603,"message":"y"}`}, asked: "2 1", opens: 2,
			err: "it names version 2 and has the shape of version 1: info: missing; in version 1: acp: initialize: y (-32603)"},
		{name: "the shape of version 1, of which nothing is spoken", min: 2, answers: []string{strings.Replace(v1, "1,", "2,", 1)},
			asked: "2", opens: 1, err: "has the shape of version 1"},
		{name: "both shapes", answers: []string{`"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{},"agentCapabilities":{}}`},
			asked: "2", opens: 1, version: 2},
		{name: "version as a string", answers: []string{`"result":{"protocolVersion":"1"}`}, asked: "2", opens: 1,
			err: `names the protocol version as a string, "1": it must be a number`},
		{name: "no version", answers: []string{`"result":{}`}, asked: "2", opens: 1, err: "no protocol version"},
		{name: "odd version", answers: []string{`"result":{"protocolVersion":1.5}`}, asked: "2", opens: 1, err: "no protocol version"},
		{name: "version 1 first", first: 1, answers: []string{v1}, asked: "1", opens: 1, version: 1},
		{name: "version 1 first, answers version 2", first: 1, answers: []string{v2, v2}, asked: "1 2", opens: 2, version: 2},
		{name: "version 1 first, supports 2", first: 1, answers: []string{`"error":{"code":-32022,"message":"x","data":{"requested":1,"supported":[2]}}`, v2}, asked: "1 2", opens: 2, version: 2},
		{name: "version 1 first, wants members of version 2", first: 1, answers: []string{`"error":{"code":-32602,"message":"x"}`, v2}, asked: "1 2", opens: 2, version: 2},
		{name: "version 1 first, fails in both", first: 1, answers: []string{`"error":{"code":-32602,"message":"x"}`, `"error":{"code":-32603,"message":"y"}`}, asked: "1 2", opens: 2,
			err: "initialize: x (-32602); in version 2: acp: initialize: y (-32603)"},
		{name: "version 1 first, wants a login", first: 1, answers: []string{`"error":{"code":-32000,"message":"x"}`}, asked: "1", opens: 1, err: "initialize: x (-32000)"},
		{name: "first outside of the bounds", min: 2, first: 1, answers: []string{v2}, asked: "2", opens: 1, version: 2},
		{name: "first above", max: 1, first: 2, answers: []string{v1}, asked: "1", opens: 1, version: 1},
		{name: "no object", answers: []string{`"result":[]`}, asked: "2", opens: 1, err: "not an object"},
	}
	for _, tt := range tests {
		for _, reopens := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/reopens=%v", tt.name, reopens), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := &clientDialer{t: t, reopens: reopens}
					c := &Client{MinVersion: tt.min, MaxVersion: tt.max, FirstVersion: tt.first}
					get := later(func() (*ClientConn, error) { return c.Connect(t.Context(), d) })
					var asked []string
					for _, answer := range tt.answers {
						synctest.Wait()
						a := d.agents[len(d.agents)-1]
						f := a.next("initialize")
						var p struct {
							ProtocolVersion    int
							Info               *Implementation
							ClientInfo         *acpv1.Implementation
							Capabilities       json.RawMessage
							ClientCapabilities json.RawMessage
						}
						if err := json.Unmarshal(f.Params, &p); err != nil {
							t.Fatal(err)
						}
						if v2 := p.ProtocolVersion == 2; v2 != (p.Info != nil) || v2 == (p.ClientInfo != nil) || v2 == (p.ClientCapabilities != nil) {
							t.Errorf("initialize does not have the shape of its version: %s", f.Params)
						}
						asked = append(asked, fmt.Sprint(p.ProtocolVersion))
						a.send(`{"jsonrpc":"2.0","id":%s,%s}`, f.ID, answer)
					}
					conn, err := get()
					opens := tt.opens
					if !reopens {
						opens = 1
					}
					if got := strings.Join(asked, " "); got != tt.asked || len(d.agents) != opens {
						t.Errorf("asked for %s over %d streams, want %s over %d", got, len(d.agents), tt.asked, opens)
					}
					if tt.err != "" {
						if err == nil || !strings.Contains(err.Error(), tt.err) {
							t.Errorf("error %v, want %q", err, tt.err)
						}
					} else if err != nil || conn.Version() != tt.version {
						t.Fatalf("%v, want version %d", err, tt.version)
					}
					// Nothing of a connection that was given up is left.
					synctest.Wait()
					for i, a := range d.agents {
						a.mu.Lock()
						if last := i == len(d.agents)-1; a.left != (tt.err != "" || !last) {
							t.Errorf("stream %d closed: %v", i, a.left)
						}
						a.mu.Unlock()
						_ = a.stream.Close()
					}
					if conn != nil {
						_ = conn.Close()
					}
				})
			})
		}
	}
}

// TestClientConnectEnds holds that Connect ends with its ctx and when the agent
// is gone, and leaves nothing behind.
func TestClientConnectEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &clientDialer{t: t, reopens: true}
		ctx, cancel := context.WithCancel(t.Context())
		get := later(func() (*ClientConn, error) { return new(Client).Connect(ctx, d) })
		synctest.Wait()
		cancel()
		if _, err := get(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		get = later(func() (*ClientConn, error) { return new(Client).Connect(t.Context(), d) })
		synctest.Wait()
		_ = d.agents[1].stream.Close()
		synctest.Wait()
		d.agents[2].next("initialize") // in version 1
		_ = d.agents[2].stream.Close()
		if _, err := get(); !errors.Is(err, jsonrpc.ErrClosed) || strings.Contains(err.Error(), "in version 1") {
			t.Error(err) // once is enough
		}
		synctest.Wait()
		if !d.agents[0].left {
			t.Error("the connection is still open")
		}
		if _, err := new(Client).Connect(t.Context(), nil); err == nil {
			t.Error("connected to nothing")
		}
		if _, err := (&Client{MinVersion: 3}).Connect(t.Context(), d); err == nil {
			t.Error("speaks version 3")
		}
		if _, err := (&Client{Meta: json.RawMessage("{")}).Connect(t.Context(), d); err == nil {
			t.Error("took malformed Meta")
		}
	})
}

// TestClientBehindInitialize holds that what the agent sends right behind its
// answer is read in the version that was agreed on, and before it not at all
// (S55).
func TestClientBehindInitialize(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &clientDialer{t: t}
				c := &Client{MaxVersion: version, Files: clientFiles1{}}
				get := later(func() (*ClientConn, error) { return c.Connect(t.Context(), d) })
				synctest.Wait()
				a := d.agents[0]
				f := a.next("initialize")
				a.request(1, "session/request_permission", `{}`)
				if got := a.response(); !strings.HasPrefix(got, "-32600") {
					t.Errorf("before initialize: %s", got)
				}
				a.answer(f, clientHelloResult(version, "{}"))
				a.request(2, "session/request_permission", `{}`)
				a.request(3, "fs/read_text_file", `{"sessionId":"s","path":"/x"}`)
				a.send(`{"jsonrpc":"2.0","id":null,"method":"_x"}`)
				want := []string{"-32602", "-32601", "-32600"} // files do not exist in version 2, nor the id null (S11)
				if version == 1 {
					want = []string{"-32602", "-32002", "-32601"}
				}
				var got []string
				for range want {
					code, _, _ := strings.Cut(a.response(), " ")
					got = append(got, code)
				}
				slices.Sort(got)
				slices.Sort(want)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				conn, err := get()
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.Close()
				_ = a.stream.Close()
			})
		})
	}
}

// TestClientAdvertises holds that what is not there is not advertised, and what
// is there is.
func TestClientAdvertises(t *testing.T) {
	all := Client{
		Info: Implementation{Name: "me", Version: "3"},
		Meta: json.RawMessage(`{"k":1}`),
		Elicit: func(context.Context, *ElicitationRequest) (*ElicitationResponse, error) {
			return nil, nil
		},
		Files: clientFiles1{}, Terminals: lend(new(clientTerminals1)), TerminalAuth: true,
	}
	shown := Client{ShowsTerminals: true}
	readOnly, form := all, all
	readOnly.Files = ReadOnly(clientFiles1{})
	form.Elicits = ElicitationKinds{Form: true}
	const shows = `"session":{"compaction":{},"configOptions":{"boolean":{}},"notices":{}},"subagents":{},"plan":{}`
	tests := []struct {
		name    string
		version int
		c       Client
		want    string
	}{
		{"nothing", 1, Client{}, `{"protocolVersion":1,"clientCapabilities":{"fs":{},"auth":{},` + shows + `},"clientInfo":{"name":"acp","version":"0"}}`},
		{"nothing", 2, Client{}, `{"protocolVersion":2,"capabilities":{},"info":{"name":"acp","version":"0"}}`},
		{"everything", 1, all, `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"_meta":{"terminal-auth":true},
			"auth":{"terminal":true},"elicitation":{"form":{},"url":{}},` + shows + `},"clientInfo":{"name":"me","version":"3"},"_meta":{"k":1}}`},
		{"everything", 2, all, `{"protocolVersion":2,"capabilities":{"auth":{"terminal":{}},"elicitation":{"form":{},"url":{}}},
			"info":{"name":"me","version":"3"},"_meta":{"k":1}}`},
		{"terminals", 1, shown, `{"protocolVersion":1,"clientCapabilities":{"fs":{},"auth":{},"_meta":{"terminal_output":true,"terminal_output_delta":true},` +
			shows + `},"clientInfo":{"name":"acp","version":"0"}}`},
		{"terminals", 2, shown, `{"protocolVersion":2,"capabilities":{},"info":{"name":"acp","version":"0"}}`},
		{"read only", 1, readOnly, `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true},"terminal":true,"_meta":{"terminal-auth":true},
			"auth":{"terminal":true},"elicitation":{"form":{},"url":{}},` + shows + `},"clientInfo":{"name":"me","version":"3"},"_meta":{"k":1}}`},
		{"forms", 2, form, `{"protocolVersion":2,"capabilities":{"auth":{"terminal":{}},"elicitation":{"form":{}}},
			"info":{"name":"me","version":"3"},"_meta":{"k":1}}`},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s/v%d", tt.name, tt.version), func(t *testing.T) {
			c, err := tt.c.ready()
			if err != nil {
				t.Fatal(err)
			}
			sent, err := json.Marshal(c.hello(tt.version))
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := errors.Join(json.Unmarshal(sent, &got), json.Unmarshal([]byte(tt.want), &want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestClientConnTells(t *testing.T) {
	for version := 1; version <= 2; version++ {
		synctest.Test(t, func(t *testing.T) {
			conn, _ := clientLink(t, Client{}, version, clientAll(version))
			if conn.Version() != version || len(conn.AuthMethods()) != 2 || conn.Meta() != nil {
				t.Error(conn.Version(), conn.AuthMethods(), conn.Meta())
			}
			if name := conn.Agent().Name; name != []string{"unknown", "agent"}[version-1] {
				t.Error(name)
			}
			if caps := conn.Capabilities().Session; caps == nil || caps.Fork == nil {
				t.Error(caps)
			}
			if v1 := conn.CapabilitiesV1(); (v1 != nil) != (version == 1) {
				t.Error(v1)
			}
			if conn.Conn() == nil || ClientConnFrom(t.Context()) != nil {
				t.Error("wrong connection")
			}
			select {
			case <-conn.Done():
				t.Error("ended")
			default:
			}
		})
	}
}

// FuzzClientAnsweredVersion holds that no answer to initialize does harm.
func FuzzClientAnsweredVersion(f *testing.F) {
	for _, s := range []string{`{"protocolVersion":1}`, `{"protocolVersion":"1"}`, `[]`, `{"protocolVersion":1e400}`, clientHelloResult(2, clientAllV2), clientHelloResult(1, clientAllV1)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := clientAnsweredVersion(data)
		if (err == nil) != (v >= 1 && v <= 65535) {
			t.Fatal(v, err)
		}
		c := &ClientConn{client: new(Client)}
		for version := 1; version <= 2; version++ {
			p := c.newPeer(version)
			if err := p.proto.initialized(p, data); err == nil && p.caps.Session == nil && version == 1 {
				t.Fatal("a peer without capabilities")
			}
		}
	})
}
