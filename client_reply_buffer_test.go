package acp

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/acpv2"
)

var errTestUnreadable = errors.New("unreadable")

// bufferRig is a buffer, and what was read from it.
type bufferRig struct {
	*testing.T
	replyBuffer
	yield bool   // what yields reports
	asked []bool // what yields was asked with
	seq   uint64
	log   []string // of the reader; an update is its number
	full  bool     // the last push found no room
}

func (r *bufferRig) push(u *Update) (room <-chan struct{}) {
	r.seq++
	room = r.replyBuffer.push(&heldUpdate{u: u, seq: r.seq}, func(read bool) bool {
		r.asked = append(r.asked, read)
		return r.yield
	})
	r.full = room != nil
	return room
}

func numbered(n uint64) *Update {
	return &Update{Update: &AgentMessageChunk{MessageID: "m", Content: Text(strconv.FormatUint(n, 10))}}
}

func sizedUpdate(n int) *Update {
	return &Update{Update: &AgentMessageChunk{MessageID: "m", Content: Text(strings.Repeat("x", n))}}
}

// take reads n updates, or as many as there are until the end.
func (r *bufferRig) take(n int) {
	for range n {
		u, err, ok := r.next()
		switch {
		case !ok:
			r.log = append(r.log, "end")
			return
		case errors.Is(err, errTestUnreadable):
			r.log = append(r.log, "unreadable")
		case errors.Is(err, ErrUpdatesLost):
			r.log = append(r.log, "lost")
		default:
			r.log = append(r.log, u.Text())
		}
	}
}

// do takes a step of a script: a verb, and how often or with what number.
func (r *bufferRig) do(step string) {
	verb, arg, _ := strings.Cut(step, " ")
	n, _ := strconv.ParseUint(arg, 10, 64)
	switch verb {
	case "push":
		for range max(n, 1) {
			r.push(numbered(r.seq + 1))
		}
	case "yield":
		r.yield = true
	case "lose":
		r.lose()
	case "misses":
		r.misses(errTestUnreadable)
	case "begin":
		r.begin(n)
	case "cut":
		r.cut(n)
	case "own":
		r.setOwn(numbered(n))
	case "restart":
		r.restart()
	case "read":
		r.replyBuffer.read()
	case "wait":
		r.leave(true)
	case "leave":
		r.leave(false)
	case "take":
		r.take(int(n))
	case "end":
		r.end()
	default:
		r.Fatal("step", step)
	}
}

func TestReplyBuffer(t *testing.T) {
	for _, tt := range []struct {
		name, steps, read string
		full              bool
	}{
		{"what is held is read", "begin; push 3; end", "1 2 3 end", false},
		{"also while more comes", "begin; push; take 1; push 2; end; take 3", "1 2 3 end", false},
		{"it has a bound", "begin; push 1025; end; take 1", "1", true},
		{"which reading makes room under", "begin; push 1024; take 2; push 2; end; take 1022", "", false},
		{"a full one that yields loses the oldest", "begin; yield; push 1026; end; take 2", "lost 3", false},
		{"once, as far as the reader is told", "begin; yield; push 1030; end; take 2; take 1", "lost 7 8", false},
		{"and so does one that has not begun", "push 1026; end; take 2", "lost 3", false},
		{"lost by hand", "begin; push; lose; end", "lost 1 end", false},
		{"unreadable", "begin; push; misses; end", "unreadable 1 end", false},
		{"both", "begin; misses; lose; push; end", "lost unreadable 1 end", false},
		{"what is older than the beginning is dropped", "push 3; begin 3; push; end", "3 4 end", false},
		{"all of it", "push 3; begin 4; push; end", "4 end", false},
		{"only the first time", "begin 1; push 3; begin 3; end", "1 2 3 end", false},
		{"losses before the beginning do not count", "push 1026; begin 3; end; take 1", "3", false},
		{"but those behind it do", "push 1026; begin 2; end; take 2", "lost 3", false},
		{"one that has ended and then learns where it began", "push 3; end; begin 3", "3 end", false},
		{"what is behind the end is cut off", "begin; push 3; cut 2; end", "1 2 end", false},
		{"a restart leaves its own message", "own 9; begin; push 3; restart; push; end", "9 4 end", false},
		{"without the losses", "own 9; begin; push; lose; restart; end", "9 end", false},
		{"but not under a reader", "own 9; begin; push 3; read; restart; end", "1 2 3 end", false},
		{"nor in version 2", "begin; push 3; restart; end", "1 2 3 end", false},
		{"nobody reads", "begin; push 3; misses; lose; wait; push 2000; misses; lose; end", "end", false},
		{"a reader is there", "begin; read; push; wait; push; end", "1 2 end", false},
		{"until it leaves", "begin; read; push; leave; push; end", "end", false},
		{"for good", "begin; read; leave; read; push; end", "end", false},
		{"nothing comes after the end", "begin; push; end; push; lose; misses", "1 end", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &bufferRig{T: t}
			full := false
			for step := range strings.SplitSeq(tt.steps, "; ") {
				r.do(step)
				full = full || r.full
			}
			if !strings.Contains(tt.steps, "take") {
				r.take(100)
			} else if tt.read == "" {
				r.log = nil // only the bound is of interest
			}
			if got := strings.Join(r.log, " "); got != tt.read || full != tt.full {
				t.Errorf("read %q, full %v, not %q, %v", got, full, tt.read, tt.full)
			}
			if n := len(r.held) - r.head; n == 0 && r.bytes != 0 {
				t.Errorf("%d bytes of nothing", r.bytes)
			}
		})
	}
}

// TestReplyBufferBytes: the size of updates is bounded as well as their number, and
// one that is larger than all there is room for is held alone.
func TestReplyBufferBytes(t *testing.T) {
	r := &bufferRig{T: t}
	r.begin(0)
	pushed := 0
	for range 100 {
		if r.push(sizedUpdate(1<<20)) != nil {
			break
		}
		pushed++
	}
	if pushed != 15 || r.bytes < 15<<20 || r.bytes > maxHeldBytes {
		t.Errorf("%d updates of %d bytes", pushed, r.bytes)
	}
	r.take(pushed)
	if r.bytes != 0 {
		t.Errorf("%d bytes of nothing", r.bytes)
	}
	if r.push(sizedUpdate(2*maxHeldBytes)) != nil {
		t.Error("one large update is not held")
	}
	if r.push(sizedUpdate(1)) == nil {
		t.Error("beside a large one there is room")
	}
}

// TestReplyBufferWakes: what waits for an update, or for room, learns of everything
// that may give it one.
func TestReplyBufferWakes(t *testing.T) {
	for step, read := range map[string]string{
		"push": "1", "misses": "unreadable", "end": "end", "lose; push": "lost",
		"begin": "", "restart": "", "cut 0": "",
	} {
		t.Run("reader/"+step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &bufferRig{T: t}
				r.do("begin")
				go r.take(1)
				synctest.Wait()
				for s := range strings.SplitSeq(step, "; ") {
					r.do(s)
				}
				synctest.Wait()
				if got := strings.Join(r.log, " "); got != read {
					t.Errorf("read %q, not %q", got, read)
				}
				r.do("end")
			})
		})
	}
	t.Run("reader/begin behind a push", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &bufferRig{T: t}
			r.do("push 2")
			go r.take(1)
			synctest.Wait()
			if r.log != nil {
				t.Error("it is read before it has begun:", r.log)
			}
			r.do("begin 2")
			synctest.Wait()
			if got := fmt.Sprint(r.log); got != "[2]" {
				t.Error("read", got)
			}
		})
	})
	for _, step := range []string{"take 1", "cut 5", "own 1; restart", "leave", "end"} {
		t.Run("room/"+step, func(t *testing.T) {
			r := &bufferRig{T: t}
			r.do("begin")
			r.do("push 1024")
			room := r.push(numbered(0))
			if room == nil {
				t.Fatal("there is room")
			}
			for s := range strings.SplitSeq(step, "; ") {
				r.do(s)
			}
			select {
			case <-room:
			default:
				t.Error("whoever waits for room is not woken")
			}
		})
	}
	r := &bufferRig{T: t}
	r.do("begin")
	r.do("push 1024")
	room := r.push(numbered(0))
	r.poke()
	select {
	case <-room:
	default:
		t.Error("a poke wakes nobody")
	}
}

// TestReplyBufferYields: whether a full buffer gives way is asked when it has begun
// and has no room, and not before; the answer may depend on whether somebody reads.
func TestReplyBufferYields(t *testing.T) {
	for _, tt := range []struct {
		steps string
		asked []bool // with whether somebody reads
	}{
		{"begin; push 1024", nil},
		{"push 2000", nil}, // it has not begun: the oldest go without a question
		{"begin; push 1025", []bool{false}},
		{"begin; read; push 1025", []bool{true}},
		{"begin; read; push 1025; take 1; push", []bool{true}},
		{"begin; push 1024; leave; push", nil},
		{"begin; push 1024; end; push", nil},
		{"begin; wait; push 2000", nil},
	} {
		t.Run(tt.steps, func(t *testing.T) {
			r := &bufferRig{T: t}
			for step := range strings.SplitSeq(tt.steps, "; ") {
				r.do(step)
			}
			if !slices.Equal(r.asked, tt.asked) {
				t.Errorf("asked with %v, not %v", r.asked, tt.asked)
			}
			if got := r.unread.Load(); got != (r.reader == readerGone) {
				t.Errorf("unread is %v with reader %d", got, r.reader)
			}
		})
	}
}

// TestReplyBufferLargeYields: an update that needs much room takes that of as many of
// the oldest as it must, of all of them if it is larger than the bound.
func TestReplyBufferLargeYields(t *testing.T) {
	for _, tt := range []struct {
		bytes, left int
	}{
		{1, 15}, // fits
		{1 << 20, 14},
		{3 << 20, 12},
		{2 * maxHeldBytes, 0},
	} {
		r := &bufferRig{T: t, yield: true}
		r.begin(0)
		for range 15 {
			r.push(sizedUpdate(1 << 20))
		}
		if r.push(sizedUpdate(tt.bytes)) != nil {
			t.Errorf("%d bytes wait", tt.bytes)
		}
		if n := len(r.held) - r.head; n != tt.left+1 || r.lost != (tt.left < 15) {
			t.Errorf("%d bytes: %d held, lost %v; want %d", tt.bytes, n, r.lost, tt.left+1)
		}
	}
}

// TestReplyBufferSize: the size of an update follows its text, in whatever way that is
// found out.
func TestReplyBufferSize(t *testing.T) {
	text := strings.Repeat("x", 1<<16)
	annotated := &TextContent{Text: text, Annotations: &acpv2.Annotations{}}
	for name, u := range map[string]SessionUpdate{
		"text":      &AgentMessageChunk{Content: Text(text)},
		"annotated": &AgentMessageChunk{Content: annotated},
		"thought":   &AgentThoughtChunk{Content: Text(text)},
		"meta":      &AgentMessageChunk{Content: Text(""), Meta: []byte(strconv.Quote(text))},
		"tool call": &ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set(text)},
	} {
		if n := heldSize(&Update{Update: u}); n < 1<<16 || n > 1<<16+1024 {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
}

// TestReplyBufferReadAgain: once a reader has left, a later one waits for the end and
// gets nothing but that.
func TestReplyBufferReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &bufferRig{T: t}
		for _, step := range []string{"begin", "push 3", "read", "take 1", "leave", "push 2", "read", "restart"} {
			r.do(step)
		}
		go r.take(5)
		for _, step := range []string{"push 2", "lose", "misses"} {
			r.do(step)
		}
		synctest.Wait()
		if got := strings.Join(r.log, " "); got != "1" {
			t.Errorf("read %q before the end", got)
		}
		r.do("end")
		synctest.Wait()
		if got := strings.Join(r.log, " "); got != "1 end" {
			t.Errorf("read %q", got)
		}
	})
}

// TestReplyBufferRace: an adder and a reader that work at the same time lose nothing
// and keep the order, however often they wait for each other.
func TestReplyBufferRace(t *testing.T) {
	const updates = 20 * maxHeld
	r := &bufferRig{T: t}
	r.begin(0)
	go func() {
		defer r.end()
		for range updates {
			u := numbered(r.seq + 1)
			room := r.push(u)
			for r.seq--; room != nil; r.seq-- {
				<-room
				room = r.push(u)
			}
			r.seq++
			r.poke() // somebody else looks for room
		}
	}()
	r.replyBuffer.read()
	for want := 1; ; want++ {
		u, err, ok := r.next()
		if !ok {
			if want != updates+1 {
				t.Errorf("%d updates", want-1)
			}
			return
		}
		if err != nil || u.Text() != strconv.Itoa(want) {
			t.Fatalf("read %v, %v in place of %d", u, err, want)
		}
	}
}
