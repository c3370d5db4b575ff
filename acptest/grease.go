package acptest

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"sync"

	"github.com/goacp/acp/internal/pattern"
	"github.com/goacp/acp/jsonrpc"
)

const (
	// greaseFrame is the longest frame that is greased, in bytes.
	greaseFrame = 1 << 20
	// greaseOpen bounds the requests whose answers are greased.
	greaseOpen = 4096
)

// Grease returns the stream with random additions, in both directions, that the
// protocol obliges every peer to tolerate:
//
//   - unknown members whose names begin with _grease, in params, in results and
//     in the objects within;
//   - entries of _meta;
//   - notifications with unknown methods, _grease/…;
//   - session/update with an unknown update, _grease…, before real ones.
//
// Existing content does not change, and neither do ids and the order of frames. Nothing
// is added where every member has a meaning, such as in rawInput, forms, error.data and
// the params of extension methods. Frames are added only after the answer to
// initialize. Frames that are not messages, or are longer than 1 MiB, pass unchanged.
// The additions are determined by seed and the order of the frames of each direction.
//
// A peer behind the stream must behave as it does without Grease.
func Grease(stream jsonrpc.Stream, seed uint64) jsonrpc.Stream {
	g := &greased{Stream: stream, asked: [2]map[string]string{{}, {}}}
	g.in = &greaser{g: g, rng: rand.New(rand.NewPCG(seed, 5)), from: 0}
	g.out = &greaser{g: g, rng: rand.New(rand.NewPCG(seed, 6)), from: 1}
	return g
}

type greased struct {
	jsonrpc.Stream
	in, out *greaser
	next    *jsonrpc.Frame // to be read next

	mu    sync.Mutex
	asked [2]map[string]string // methods of unanswered requests by id, by direction
	ready bool                 // initialize was answered
}

// Unwrap lets a client find the process behind the stream.
func (g *greased) Unwrap() jsonrpc.Stream { return g.Stream }

func (g *greased) ReadFrame() (jsonrpc.Frame, error) {
	if f := g.next; f != nil {
		g.next = nil
		return *f, nil
	}
	f, err := g.Stream.ReadFrame()
	if err != nil {
		return f, err
	}
	extra, frame := g.in.grease(f.Data)
	if frame != "" {
		f.Data, f.Owned = []byte(frame), true
	}
	if extra == "" {
		return f, nil
	}
	f = owned(f)
	g.next = &f
	return jsonrpc.Frame{Data: []byte(extra), Owned: true, Line: f.Line}, nil
}

func (g *greased) WriteFrame(data []byte) error {
	extra, frame := g.out.grease(data)
	if extra != "" {
		if err := g.Stream.WriteFrame([]byte(extra)); err != nil {
			return err
		}
	}
	if frame != "" {
		data = []byte(frame)
	}
	return g.Stream.WriteFrame(data)
}

// greaser greases one direction.
type greaser struct {
	g    *greased
	rng  *rand.Rand
	from int // index into asked of the requests that go this way
}

// grease returns the frame with additions, and a frame to be sent before it. Either is
// "" if there is none.
func (r *greaser) grease(data []byte) (extra, frame string) {
	if len(data) > greaseFrame {
		return "", ""
	}
	v, err := pattern.Parse(string(data))
	if err != nil || v.Kind != pattern.Object {
		return "", ""
	}
	method, known, ready := r.track(v)
	e := &edits{rng: r.rng}
	e.add(v)
	if known {
		for _, part := range []string{"params", "result"} {
			if m := v.Get(part); m != nil && m.Kind == pattern.Object {
				e.object(m, method)
			}
		}
	}
	if ready {
		extra = r.extra(v, method)
	}
	return extra, e.apply(string(data))
}

// track returns the method that a frame belongs to and whether its members are known to
// be those of the protocol.
func (r *greaser) track(v *pattern.Value) (method string, known, ready bool) {
	g := r.g
	g.mu.Lock()
	defer g.mu.Unlock()
	ready = g.ready
	id := ""
	if m := v.Get("id"); m != nil {
		id = m.Text
	}
	if method = v.StringAt("method"); method != "" {
		if id != "" && len(g.asked[r.from]) < greaseOpen {
			g.asked[r.from][id] = method
		}
	} else if method = g.asked[1-r.from][id]; method != "" {
		delete(g.asked[1-r.from], id)
		g.ready = g.ready || method == "initialize" && v.Get("result") != nil
	}
	known = method != "" && method[0] != '_' && !strings.HasPrefix(method, "mcp/")
	return method, known, ready
}

// extra returns a frame to be sent before v.
func (r *greaser) extra(v *pattern.Value, method string) string {
	if method == "session/update" && v.Get("id") == nil && r.rng.IntN(4) == 0 {
		if id := v.Get("params").Get("sessionId"); id != nil && id.Kind == pattern.String {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":{"sessionUpdate":%s,"value":%s}}}`,
				id.Text, pattern.Quote(greaseName(r.rng)), greaseValue(r.rng))
		}
	}
	if r.rng.IntN(8) == 0 {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":%s,"params":{"value":%s}}`, pattern.Quote("_grease/"+greaseName(r.rng)), greaseValue(r.rng))
	}
	return ""
}

func greaseName(rng *rand.Rand) string { return fmt.Sprintf("_grease%04x", rng.IntN(1<<16)) }

var greaseValues = []string{
	`null`, `true`, `-7`, `1.5e300`, `18446744073709551615`, `""`, `"grease"`, `"\ud83e\uddc8 \u0000 é 🫒"`,
	`[]`, `{}`, `[null,[[]],{"type":"_grease"}]`, `{"type":"text","text":"grease","sessionId":"none","_meta":null}`,
}

func greaseValue(rng *rand.Rand) string { return greaseValues[rng.IntN(len(greaseValues))] }

// edits are insertions into a text.
type edits struct {
	rng *rand.Rand
	all []edit
}

type edit struct {
	at   int
	text string
}

func (e *edits) insert(at int, text string) { e.all = append(e.all, edit{at, text}) }

func (e *edits) apply(text string) string {
	sort.SliceStable(e.all, func(i, j int) bool { return e.all[i].at < e.all[j].at })
	var b strings.Builder
	done := 0
	for _, ed := range e.all {
		b.WriteString(text[done:ed.at] + ed.text)
		done = ed.at
	}
	b.WriteString(text[done:])
	return b.String()
}

// object adds members to an object and to those within it.
func (e *edits) object(v *pattern.Value, method string) {
	e.add(v)
	if e.rng.IntN(4) == 0 {
		e.meta(v)
	}
	for _, m := range v.Members {
		if free(m.Key, m.Val, method) {
			continue
		}
		e.within(m.Val, method)
	}
}

func (e *edits) within(v *pattern.Value, method string) {
	switch v.Kind {
	case pattern.Object:
		e.object(v, method)
	case pattern.Array:
		for _, item := range v.Elems {
			e.within(item, method)
		}
	}
}

// free reports whether the value of a member is not made of the protocol's objects.
func free(key string, v *pattern.Value, method string) bool {
	switch key {
	case "_meta", "rawInput", "rawOutput", "data", "properties", "env", "headers":
		return v.Kind == pattern.Object
	case "content":
		return strings.HasPrefix(method, "elicitation/")
	}
	return false
}

// add inserts an unknown member at the beginning or the end of every other object, at
// random.
func (e *edits) add(v *pattern.Value) {
	if e.rng.IntN(2) == 0 {
		return
	}
	name := greaseName(e.rng)
	if v.Get(name) != nil {
		return
	}
	e.member(v, pattern.Quote(name)+":"+greaseValue(e.rng))
}

func (e *edits) member(v *pattern.Value, text string) {
	start, end := v.At+1, v.At+len(v.Text)-1
	switch {
	case len(v.Members) == 0:
		if len(e.all) > 0 && e.all[len(e.all)-1].at == end { // something was inserted
			text = "," + text
		}
		e.insert(end, text)
	case e.rng.IntN(2) == 0:
		e.insert(start, text+",")
	default:
		e.insert(end, ","+text)
	}
}

// meta adds an entry to the _meta of an object, and _meta itself if it is missing.
func (e *edits) meta(v *pattern.Value) {
	entry := pattern.Quote(greaseName(e.rng)) + ":" + greaseValue(e.rng)
	switch m := v.Get("_meta"); {
	case m == nil:
		e.member(v, `"_meta":{`+entry+`}`)
	case m.Kind == pattern.Object:
		e.member(m, entry)
	}
}
