package gateway

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// A reader is a client that is sent updates of a remembered record.
type reader struct {
	version int
	session acp.SessionID
	pos     *position
	v1      translate.ToV1
	part    int              // updates of the record that it is sent before
	change  func(params any) // what is different about its notifications; nil for nothing
}

// newReader returns a client that has been sent some updates before.
func newReader(version int, before ...acp.SessionUpdate) *reader {
	r := &reader{version: version, session: "s", pos: new(position)}
	r.v1.Caps = acpv1.ClientCapabilities{
		Plan: new(acpv1.PlanCapabilities), Subagents: new(acpv1.SubagentCapabilities),
		Session: &acpv1.ClientSessionCapabilities{Notices: new(acpv1.NoticeCapabilities), Compaction: new(acpv1.CompactionCapabilities)},
	}
	for _, u := range before {
		r.v1.Update(u)
	}
	return r
}

// notifications returns what the client is sent of an update, without positions.
func (r *reader) notifications(u acp.SessionUpdate) (all []any) {
	if r.version == 2 {
		all = append(all, &acpv2.UpdateSessionNotification{SessionID: r.session, Update: u})
	} else {
		for _, v1 := range r.v1.Update(u) {
			all = append(all, &acpv1.SessionNotification{SessionID: acpv1.SessionID(r.session), Update: v1})
		}
	}
	for _, n := range all {
		if r.change != nil {
			r.change(n)
		}
	}
	return all
}

// read sends the client an update as the gateway does, and checks that each notification is what it is on its own. It
// returns how many had the bytes of another client's.
func (r *reader) read(t *testing.T, g *Gateway, record *engine.Record) (shared int) {
	t.Helper()
	d, err := g.decoded.of("s", record)
	if err != nil {
		t.Fatal(err)
	}
	g.positions.Store(positionKey{session: r.session}, r.pos)
	defer g.positions.Delete(positionKey{session: r.session})
	r.pos.at(record)
	r.pos.says(d)
	r.pos.part = r.part
	send := g.tellPositions(func(_ context.Context, q *jsonrpc.Request) (any, error) {
		return q.Params, nil
	})
	for _, n := range r.notifications(d.update) {
		before := []*encoded{d.v1.kept.Load(), d.v2.kept.Load()}
		want := r.alone(t, n)
		sent, err := send(t.Context(), &jsonrpc.Request{Method: "session/update", Params: n})
		if err != nil {
			t.Fatal(err)
		}
		got, err := sent.(interface {
			AppendJSON([]byte) ([]byte, error)
		}).AppendJSON(nil)
		if err != nil || string(got) != want {
			t.Errorf("was sent\n%s, %v, want\n%s", got, err, want)
		}
		e, ok := sent.(*encoded)
		if ok && acp.SessionParams(e).InSession() != r.session {
			t.Errorf("is in the session %q, want %q", e.InSession(), r.session)
		}
		if ok && slices.Contains(before, e) {
			shared++
		}
	}
	r.pos.past(record)
	return shared
}

// alone returns a notification as it is encoded for one client only.
func (r *reader) alone(t *testing.T, n any) string {
	t.Helper()
	p := &position{known: r.pos.known, sending: r.pos.sending, cursor: r.pos.cursor, mark: r.pos.mark, part: r.pos.part, skip: r.pos.skip, hidden: r.pos.hidden}
	at, _, skip := p.next(nil)
	if skip {
		t.Fatal("it is skipped")
	}
	var meta json.RawMessage
	if at.known {
		meta = at.meta()
	}
	var data []byte
	var err error
	switch n := n.(type) {
	case *acpv1.SessionNotification:
		c := *n
		if len(c.Meta) == 0 {
			c.Meta = meta
		}
		data, err = c.AppendJSON(nil)
	case *acpv2.UpdateSessionNotification:
		c := *n
		if len(c.Meta) == 0 {
			c.Meta = meta
		}
		data, err = c.AppendJSON(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// recordOf returns a record of an update of version 2.
func recordOf(seq uint64, update string) *engine.Record {
	return &engine.Record{Seq: seq, Kind: kindUpdate, Data: []byte(`{"update":` + update + `}`), Hash: [32]byte{byte(seq), 2, 3, 4, 5}}
}

// several returns a gateway with a session that several clients watch.
func several() *Gateway {
	g := new(Gateway)
	for range 3 {
		g.decoded.join("s", 1)
	}
	return g
}

// TestOnce: clients are sent the same bytes as if each update were encoded for each, whatever it is. From the third one
// on they share them, in version 2 whatever it is, and in version 1 if it is text there, as a skill is.
func TestOnce(t *testing.T) {
	text := []string{"user_message", "agent_message", "agent_thought", "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "content: text", "content: skill", "half", "end"}
	for _, s := range scenes(2) {
		t.Run(s.name, func(t *testing.T) {
			g := several()
			var all []*reader
			for range 4 {
				all = append(all, newReader(1), newReader(2))
			}
			for i, update := range s.updates {
				for j, r := range all {
					want := 0
					if j >= 4 && (r.version == 2 || slices.Contains(text, s.name)) {
						want = 1
					}
					if got := r.read(t, g, recordOf(uint64(i+1), update)); got != want {
						t.Errorf("client %d, of version %d, shared %d notifications, want %d: %s", j, r.version, got, want, update)
					}
				}
			}
		})
	}
}

// TestOnceDifferent: a client for which anything is different is sent what it is to be sent, and others share what is the
// same all the same.
func TestOnceDifferent(t *testing.T) {
	const (
		plain = `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"word"}}`
		whole = `{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"word"},{"type":"text","text":"more"}]}`
	)
	chunk := func(text string) *acp.AgentMessageChunk {
		return &acp.AgentMessageChunk{MessageID: "m", Content: acp.Text(text)}
	}
	// change changes what a notification says in version 1.
	change := func(f func(n *acpv1.SessionNotification, c *acpv1.AgentMessageChunk, text *acpv1.TextContent)) func(any) {
		return func(params any) {
			if n, ok := params.(*acpv1.SessionNotification); ok {
				c := n.Update.(*acpv1.AgentMessageChunk)
				f(n, c, c.Content.(*acpv1.TextContent))
			}
		}
	}
	type test struct {
		name   string
		update string
		before []acp.SessionUpdate // what the client has been sent
		change func(r *reader)
		same   [3]bool // whether it shares, by the version
	}
	own := json.RawMessage(`{"x":1}`)
	for _, test := range []test{
		{name: "nothing", update: plain, same: [3]bool{1: true, 2: true}},
		{name: "session", update: plain, change: func(r *reader) { r.session = "other" }},
		{name: "mark", update: plain, change: func(r *reader) { r.pos.cursor, r.pos.mark = 1, "aabbccdd" }},
		{name: "part", update: plain, change: func(r *reader) { r.part = 1 }},
		{name: "hidden", update: plain, change: func(r *reader) { r.pos.hide(1) }},
		{name: "begins in the middle", update: whole, before: []acp.SessionUpdate{chunk("wo")}, same: [3]bool{1: true, 2: true}}, // the second part
		{name: "has the beginning", update: whole, before: []acp.SessionUpdate{chunk("word")}, same: [3]bool{2: true}},
		{name: "meta of its own", update: plain, change: func(r *reader) {
			r.change = func(params any) {
				switch n := params.(type) {
				case *acpv1.SessionNotification:
					n.Meta = own
				case *acpv2.UpdateSessionNotification:
					n.Meta = own
				}
			}
		}},
		{name: "unknown members", update: plain, change: func(r *reader) {
			r.change = func(params any) {
				switch n := params.(type) {
				case *acpv1.SessionNotification:
					n.Unknown = own
				case *acpv2.UpdateSessionNotification:
					n.Unknown = own
				}
			}
		}},
		{name: "update", update: plain, change: func(r *reader) {
			r.change = func(params any) {
				switch n := params.(type) {
				case *acpv1.SessionNotification:
					n.Update = new(acpv1.UserMessageChunk(*n.Update.(*acpv1.AgentMessageChunk)))
				case *acpv2.UpdateSessionNotification:
					n.Update = chunk("other")
				}
			}
		}},
		{name: "text", update: plain, same: [3]bool{2: true}, change: func(r *reader) {
			r.change = change(func(_ *acpv1.SessionNotification, _ *acpv1.AgentMessageChunk, text *acpv1.TextContent) {
				text.Text = "other"
			})
		}},
		{name: "meta of the text", update: plain, same: [3]bool{2: true}, change: func(r *reader) {
			r.change = change(func(_ *acpv1.SessionNotification, _ *acpv1.AgentMessageChunk, text *acpv1.TextContent) {
				text.Meta = own
			})
		}},
		{name: "members of the text", update: plain, same: [3]bool{2: true}, change: func(r *reader) {
			r.change = change(func(_ *acpv1.SessionNotification, _ *acpv1.AgentMessageChunk, text *acpv1.TextContent) {
				text.Unknown = own
			})
		}},
		{name: "annotations", update: plain, same: [3]bool{2: true}, change: func(r *reader) {
			r.change = change(func(_ *acpv1.SessionNotification, _ *acpv1.AgentMessageChunk, text *acpv1.TextContent) {
				text.Annotations = &acpv1.Annotations{Audience: []acpv1.Role{acpv1.RoleUser}}
			})
		}},
		{name: "message", update: plain, same: [3]bool{2: true}, change: func(r *reader) {
			r.change = change(func(_ *acpv1.SessionNotification, c *acpv1.AgentMessageChunk, _ *acpv1.TextContent) {
				c.MessageID = "other"
			})
		}},
		{name: "meta of the chunk", update: plain, same: [3]bool{2: true}, change: func(r *reader) {
			r.change = change(func(_ *acpv1.SessionNotification, c *acpv1.AgentMessageChunk, _ *acpv1.TextContent) { c.Meta = own })
		}},
		{name: "members of the chunk", update: plain, same: [3]bool{2: true}, change: func(r *reader) {
			r.change = change(func(_ *acpv1.SessionNotification, c *acpv1.AgentMessageChunk, _ *acpv1.TextContent) { c.Unknown = own })
		}},
		{name: "content", update: plain, same: [3]bool{2: true}, change: func(r *reader) {
			r.change = func(params any) {
				if n, ok := params.(*acpv1.SessionNotification); ok {
					n.Update.(*acpv1.AgentMessageChunk).Content = &acpv1.ImageContent{Data: "aGk=", MIMEType: "image/png"}
				}
			}
		}},
	} {
		for version := 1; version <= 2; version++ {
			// It comes third, or it is the first two, whose bytes others would be sent.
			for _, first := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, version %d, first: %t", test.name, version, first), func(t *testing.T) {
					different := func() *reader {
						r := newReader(version, test.before...)
						if test.change != nil {
							test.change(r)
						}
						return r
					}
					g := several()
					record := recordOf(2, test.update)
					if first {
						different().read(t, g, record)
						different().read(t, g, record)
					} else {
						newReader(version).read(t, g, record)
						newReader(version).read(t, g, record)
						if got := different().read(t, g, record) > 0; got != test.same[version] {
							t.Errorf("shares: %t, want %t", got, test.same[version])
						}
						if newReader(version).read(t, g, record) == 0 {
							t.Error("the next one does not share what is the same for it")
						}
					}
					newReader(version).read(t, g, record)
				})
			}
		}
	}
}

// TestOnceBounds: what is kept for others counts, and is forgotten with the update; nothing is kept of what is large, or of
// an update that is forgotten.
func TestOnceBounds(t *testing.T) {
	g := several()
	c := &g.decoded
	update := func(size int) string {
		return `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"` + strings.Repeat("x", size) + `"}}`
	}
	total := func() (n int) {
		for _, d := range c.queue {
			n += d.size
			for _, s := range []*shared{&d.v1, &d.v2} {
				if e := s.kept.Load(); e != nil {
					n += len(e.json)
				}
			}
		}
		return n
	}
	most := 0
	for seq := range uint64(200) {
		for range 3 {
			newReader(1).read(t, g, recordOf(seq+1, update(50_000)))
			newReader(2).read(t, g, recordOf(seq+1, update(50_000)))
		}
		most = max(most, total())
	}
	if most > maxDecodedBytes || most < maxDecodedBytes/2 || c.bytes < total() || c.bytes > maxDecodedBytes {
		t.Errorf("%d bytes were kept at most, and %d are now, which count as %d", most, total(), c.bytes)
	}
	for range 3 {
		newReader(1).read(t, g, recordOf(1000, update(maxEncoded)))
		newReader(2).read(t, g, recordOf(1000, update(maxEncoded)))
	}
	last := c.queue[len(c.queue)-1]
	if last.seq != 1000 || last.v1.kept.Load() != nil || last.v2.kept.Load() != nil {
		t.Error("what a large record is encoded as is kept")
	}
	forgotten, err := c.of("s", recordOf(2000, update(10)))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.join("s", -1)
	}
	for range 3 {
		c.once(forgotten, &acpv2.UpdateSessionNotification{SessionID: "s", Update: forgotten.update}, spot{known: true, cursor: 1})
	}
	if forgotten.v2.kept.Load() != nil || c.bytes != 0 || len(c.queue) != 0 {
		t.Errorf("%d bytes are kept", c.bytes)
	}
}

// TestSameBytes: what clients were sent together is what one is sent that comes alone and resumes where they began, byte for
// byte, in both versions, with everything that an agent of either version can say.
func TestSameBytes(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		all := slices.DeleteFunc(scenes(agent), func(s scene) bool { return s.asks != "" }) // these are other methods
		p := &play{version: agent, scenes: all, view: newView(all)}
		r := newRig(t, p.agent())
		r.max = agent
		quiet := func(c *acp.Client) { c.Update = nil }
		author := r.connect(version, quiet)
		s := author.new(t)
		say(t, s, "end")
		var live []*client
		var wires []*wire
		var from []int
		for range 4 {
			c, w := r.wired(version, quiet)
			c.load(t, s.ID())
			live, wires, from = append(live, c), append(wires, w), append(from, w.count())
		}
		head, err := r.log.Head(t.Context(), string(s.ID()))
		if err != nil {
			t.Fatal(err)
		}
		for _, scene := range all {
			say(t, s, scene.name)
		}
		// read returns what a client was sent of the session and of its subagents up to the last word.
		read := func(w *wire, from int) (sent []string) {
			for i := from; ; i++ {
				for i >= w.count() {
					runtime.Gosched()
				}
				w.mu.Lock()
				f := string(w.frames[i])
				w.mu.Unlock()
				if !strings.Contains(f, `"session/update"`) || !strings.Contains(f, `"cursor":`) || strings.Contains(f, `"current_mode_update"`) {
					continue // it is no record, or a mode, which who comes later knows already
				}
				sent = append(sent, f)
				if strings.Contains(f, `"agent_message_chunk"`) && strings.Contains(f, `"text":"end"`) {
					return sent
				}
			}
		}
		var together [][]string
		for i, w := range wires {
			together = append(together, read(w, from[i]))
		}
		shared := 0
		r.g.decoded.mu.Lock()
		for _, d := range r.g.decoded.queue {
			if d.v1.kept.Load() != nil || d.v2.kept.Load() != nil {
				shared++
			}
		}
		r.g.decoded.mu.Unlock()
		if shared < 5 {
			t.Errorf("%d updates are kept for others", shared)
		}
		for _, c := range append(live, author) {
			_ = c.conn.Close()
		}
		for {
			r.g.decoded.mu.Lock()
			n := len(r.g.decoded.watch)
			r.g.decoded.mu.Unlock()
			if n == 0 {
				break
			}
			runtime.Gosched()
		}
		c, w := r.wired(version, quiet)
		meta := fmt.Sprintf(`{"%s":{"cursor":%d,"mark":"%s"}}`, metaKey, head.Seq, hex.EncodeToString(head.Hash[:maxMark/2]))
		if _, err := c.conn.Resume(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project", Meta: json.RawMessage(meta)}); err != nil {
			t.Fatal(err)
		}
		alone := read(w, 0)
		if len(alone) < len(all) {
			t.Errorf("%d notifications", len(alone))
		}
		for _, sent := range together {
			if diff := cmp.Diff(alone, sent); diff != "" {
				t.Error(diff)
			}
		}
	})
}
