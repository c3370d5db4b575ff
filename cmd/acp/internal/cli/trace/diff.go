package trace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/trace"
)

// A comparison is what acp trace diff --json prints.
type comparison struct {
	Same   bool         `json:"same"`
	First  []difference `json:"first"`  // the first difference of each side that differs
	Counts []counted    `json:"counts"` // messages whose number differs
}

// A difference is the first pair of frames of one side that are not the same.
type difference struct {
	From  string `json:"from"`
	Frame int64  `json:"frame"` // of that side, from 1
	Path  string `json:"path"`  // the member that differs
	A     *side  `json:"a"`     // null if the recording has no such frame
	B     *side  `json:"b"`
}

// A side is one recording's part of a difference.
type side struct {
	Line  int64           `json:"line"`
	Frame json.RawMessage `json:"frame,omitempty"`
	Text  string          `json:"text,omitempty"` // if the frame is not JSON

	here string // the value at the path, for the printed form; "" means to print the frame
}

// A counted is how often frames of a kind occur in either recording.
type counted struct {
	What string `json:"what"`
	From string `json:"from"`
	A    int64  `json:"a"`
	B    int64  `json:"b"`
}

// A plainFrame is a frame of one side. Its data is valid until the next one is read.
type plainFrame struct {
	line  int64
	data  []byte // as it was recorded
	text  bool
	known bool   // it is JSON-RPC
	kind  string // what its id, if there is one, is of: request or answer
	value any    // decoded, without what differs from run to run; nil for text, and unless plain was called
}

// diff compares two recordings. It compares each direction on its own, because their interleaving
// differs from run to run. diff compares two recordings and prints where they differ.
func (o *Options) diff(ctx context.Context) error {
	if slices.Contains(o.Files, "-") {
		return exitcode.Errorf(exitcode.Usage, "cannot compare standard input: the recordings are read more than once")
	}
	var c comparison
	counts := map[counted][2]int64{}
	// Each side is compared separately, because their interleaving differs from run to run.
	for _, dir := range directions {
		first, err := o.diffSide(ctx, dir, counts)
		if err != nil {
			return err
		}
		if first != nil {
			c.First = append(c.First, *first)
		}
	}
	for key, n := range counts {
		if n[0] != n[1] {
			key.A, key.B = n[0], n[1]
			c.Counts = append(c.Counts, key)
		}
	}
	sort.Slice(c.Counts, func(i, j int) bool {
		a, b := c.Counts[i], c.Counts[j]
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.What, b.What)) < 0
	})
	c.Same = len(c.First) == 0
	if err := o.printComparison(&c); err != nil {
		return err
	}
	if c.Same {
		return nil
	}
	return exitcode.Errorf(exitcode.Failed, "%s and %s differ", line(o.Files[0]), line(o.Files[1]))
}

// diffSide compares the frames that were sent to one side, and counts their methods. It reads both
// recordings in step, so its memory does not depend on their length.
func (o *Options) diffSide(ctx context.Context, dir trace.Direction, counts map[counted][2]int64) (*difference, error) {
	var in [2]*file.File
	var plain [2]normaliser
	for i, name := range o.Files {
		s, err := o.open(ctx, name)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		in[i] = s
	}
	var first *difference
	for n := int64(1); ; n++ {
		var got [2]*plainFrame
		for i, s := range in {
			f, err := plain[i].next(s, dir, func(what string) {
				key := counted{What: what, From: sender(dir)}
				c, ok := counts[key]
				if !ok && len(counts) >= maxMethods {
					key.What = otherMethod
					c = counts[key]
				}
				c[i]++
				counts[key] = c
			})
			if err != nil && err != io.EOF {
				return nil, err
			}
			got[i] = f
		}
		if got[0] == nil && got[1] == nil {
			return first, nil
		}
		if first != nil {
			continue
		}
		same, err := alike(&plain, &got, in)
		if err != nil {
			return nil, err
		}
		if same {
			continue
		}
		first = &difference{From: sender(dir), Frame: n, A: got[0].side(), B: got[1].side()}
		if got[0] != nil && got[1] != nil && !got[0].text && !got[1].text {
			var a, b any
			first.Path, a, b = differs(got[0].value, got[1].value, "")
			// Ids have been replaced by numbers, which mean nothing to the user: then the
			// frames are shown.
			if key := first.Path[strings.LastIndexByte(first.Path, '.')+1:]; key != "" && key != "id" && !slices.Contains(idKeys, key) {
				first.A.here, first.B.here = shorten(jsonText(a), jsonText(b))
			}
		}
	}
}

// alike reports whether two frames are the same, except for what differs from run to run.
func alike(plain *[2]normaliser, got *[2]*plainFrame, in [2]*file.File) (bool, error) {
	a, b := got[0], got[1]
	switch {
	case a == nil || b == nil:
		return false, nil
	case a.text || b.text:
		return a.text && b.text && bytes.Equal(a.data, b.data), nil
	}
	for i := range plain {
		plain[i].added = plain[i].added[:0]
	}
	// Most frames are written in one way by both programs. Only the others are decoded.
	if plain[0].spell(a) && plain[1].spell(b) && bytes.Equal(plain[0].spelled, plain[1].spelled) {
		return true, nil
	}
	for i := range plain {
		plain[i].undo()
	}
	var text [2][]byte
	for i := range plain {
		var err error
		if text[i], err = plain[i].plain(got[i]); err != nil {
			return false, fmt.Errorf("%s: line %d: %w", line(in[i].Name), got[i].line, err)
		}
	}
	return bytes.Equal(text[0], text[1]), nil
}

func sender(dir trace.Direction) string {
	if dir == trace.ToAgent {
		return asClient
	}
	return asAgent
}

func (f *plainFrame) side() *side {
	switch {
	case f == nil:
		return nil
	case f.text:
		return &side{Line: f.line, Text: string(f.data)}
	}
	return &side{Line: f.line, Frame: bytes.Clone(bytes.ToValidUTF8(f.data, []byte("\ufffd")))}
}

// A normaliser replaces the values in the frames of one side that differ from run to run: ids
// become numbers in the order of their first appearance, and all times become the same.
type normaliser struct {
	read  frame.Reader
	ids   map[string]string
	name  []byte            // of number
	added []string          // to ids, by the frame at hand
	asks  map[string]string // methods of the other side's requests, by id, for naming the answers

	spelled []byte // of spell
	nesting []nest
	frame   plainFrame
}

// maxIDs bounds the ids that are distinguished. Further ids are compared as they are.
const maxIDs = 100_000

// next returns the next frame that was sent to dir, or io.EOF, and calls count with a name for it.
func (n *normaliser) next(s *file.File, dir trace.Direction, count func(what string)) (*plainFrame, error) {
	for {
		rec, err := s.Record()
		if err != nil {
			return nil, err
		}
		switch {
		case rec.Kind != trace.Frame && rec.Kind != trace.Text:
			continue
		case rec.Kind == trace.Text && rec.Dir == dir:
			count("(text)")
			n.frame = plainFrame{line: s.Line(), data: rec.Data, text: true}
			return &n.frame, nil
		case rec.Kind == trace.Text:
			continue
		case rec.Dir != dir && !bytes.Contains(rec.Data, []byte(`"id"`)):
			continue // no request
		}
		f := n.read.Read(rec.Data)
		if rec.Dir != dir {
			if f.Request() && len(n.asks) < maxIDs {
				if n.asks == nil {
					n.asks = map[string]string{}
				}
				n.asks[string(f.ID)] = f.Method
			}
			continue
		}
		what := f.Method
		switch {
		case f.Answer():
			what = "= " + n.asks[string(f.ID)]
			delete(n.asks, string(f.ID))
			if f.Error != nil {
				what = "!" + what[1:]
			}
		case what == "":
			what = "(odd)"
		case f.Kind != "":
			what += " " + f.Kind
		}
		count(what)
		n.frame = plainFrame{line: s.Line(), data: rec.Data, known: what != "(odd)", kind: "request"}
		if f.Answer() {
			n.frame.kind = "answer"
		}
		return &n.frame, nil
	}
}

// plain decodes a frame, and returns it as JSON without what differs from run to run.
func (n *normaliser) plain(f *plainFrame) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(f.data))
	d.UseNumber()
	if err := d.Decode(&f.value); err != nil {
		return nil, err
	}
	f.value = n.value("", f.value)
	if m, ok := f.value.(map[string]any); ok && m["id"] != nil {
		m["id"] = n.number([]byte(f.kind), fmt.Append(nil, m["id"]))
	}
	return json.Marshal(f.value)
}

// idKeys are the members that hold ids which are generated in each run.
var idKeys = []string{
	"sessionId", "toolCallId", "terminalId", "messageId", "planId", "elicitationId", "compactionId",
	"requestId", "senderSessionId", "recipientSessionId", "senderMessageId", "recipientMessageId",
}

// value replaces ids by their numbers in the order of occurrence, and times by a word. It changes
// v.
func (n *normaliser) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) { // sorted, so that ids get the same numbers in both recordings
			v[k] = n.value(k, v[k])
		}
	case []any:
		for i, item := range v {
			v[i] = n.value(key, item)
		}
	case string:
		switch {
		case slices.Contains(idKeys, key):
			return n.number([]byte(key), []byte(v))
		case strings.HasSuffix(key, "At") && len(v) >= 10:
			return "(time)"
		}
	}
	return v
}

// number returns the replacement of an id.
func (n *normaliser) number(key, id []byte) string {
	if n.ids == nil {
		n.ids = map[string]string{}
	}
	n.name = append(append(append(n.name[:0], key...), ' '), id...)
	if s, ok := n.ids[string(n.name)]; ok {
		return s
	}
	if len(n.ids) >= maxIDs {
		return string(id)
	}
	k, s := string(n.name), string(key)+" "+strconv.Itoa(len(n.ids)+1)
	n.ids[k] = s
	n.added = append(n.added, k)
	return s
}

// undo forgets the ids that the frame at hand has added.
func (n *normaliser) undo() {
	for _, k := range n.added {
		delete(n.ids, k)
	}
	n.added = n.added[:0]
}

// missing stands for the value of a member that does not exist.
type missing struct{}

// differs returns the path of the first difference between two values, and the two values there.
func differs(a, b any, at string) (path string, va, vb any) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		all := maps.Clone(x)
		maps.Copy(all, y)
		keys := slices.Sorted(maps.Keys(all))
		if at == "" {
			keys = append([]string{"method"}, keys...) // if the methods differ, nothing else is worth reporting
		}
		for _, k := range keys {
			path := strings.TrimPrefix(at+"."+k, ".")
			va, inA := x[k]
			vb, inB := y[k]
			switch {
			case !inA && !inB:
			case !inA:
				return path, missing{}, vb
			case !inB:
				return path, va, missing{}
			case !same(va, vb):
				return differs(va, vb, path)
			}
		}
	case []any:
		y, ok := b.([]any)
		if !ok {
			break
		}
		n := min(len(x), len(y))
		for i := range n {
			if !same(x[i], y[i]) {
				return differs(x[i], y[i], fmt.Sprintf("%s[%d]", at, i))
			}
		}
		path := fmt.Sprintf("%s[%d]", at, n)
		switch {
		case len(x) > n:
			return path, x[n], missing{}
		case len(y) > n:
			return path, missing{}, y[n]
		}
	}
	return at, a, b
}

// jsonText returns a value as text for the user.
func jsonText(v any) string {
	if v == (missing{}) {
		return "nothing"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// shorten removes most of the common beginning of two long texts, so that their difference is
// visible.
func shorten(a, b string) (string, string) {
	const most, kept = 40, 20
	n, last := 0, 0 // the first difference, and the beginning of a character before it
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
		if n <= len(a) && n > kept && (n-kept < len(a)) && utf8.RuneStart(a[n-kept]) {
			last = n - kept
		}
	}
	if n <= most {
		return a, b
	}
	return "…" + a[last:], "…" + b[last:]
}

func same(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// printComparison prints the first difference of each direction, and the counts that differ.
func (o *Options) printComparison(c *comparison) error {
	if o.JSON {
		c.First, c.Counts = append([]difference{}, c.First...), append([]counted{}, c.Counts...)
		return printJSON(o.App.Out, c)
	}
	p := &printer{w: o.App.Out, width: o.columns()}
	if c.Same {
		p.f("The recordings are the same, except for ids and times.")
	}
	for _, d := range c.First {
		where := ""
		if d.Path != "" {
			where = " at " + safetext.Line(d.Path, 200)
		}
		p.f("The frames of the %s first differ in number %d%s", d.From, d.Frame, where)
		p.f("%s", strings.TrimSuffix(hang("A "+d.A.show(), 2, p.width), "\n"))
		p.f("%s", strings.TrimSuffix(hang("B "+d.B.show(), 2, p.width), "\n"))
	}
	if len(c.Counts) > 0 {
		p.f("\n%-50s %-6s %7s %7s", "COUNT", "FROM", "A", "B")
	}
	for _, n := range c.Counts {
		p.f("%s %-6s %7d %7d", pad(safetext.Line(n.What, 50), 50), n.From, n.A, n.B)
	}
	return p.err
}

func (s *side) show() string {
	if s == nil {
		return "has no such frame"
	}
	data := cmp.Or(s.here, s.Text)
	if s.here == "" && s.Frame != nil {
		data = string(s.Frame)
	}
	return fmt.Sprintf("line %d: %s", s.Line, safetext.Line(data, 400))
}
