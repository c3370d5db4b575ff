//go:build unix

package page

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/trace"
)

// TestManyFrames has as many as people record in a day.
func TestManyFrames(t *testing.T) {
	long.Test(t)
	const n = 100_000
	s, tb := serve(t, Options{})
	many(n, func(r *trace.Record) { s.Feed(r) })
	last := fmt.Sprintf(`document.getElementById('row-%d')`, n)
	tb.Until(`document.getElementById('count-frames').innerText === '100,000' && ` + last + `?.innerText.includes('end_turn')`)
	nodes := func(where string) {
		t.Helper()
		tb.Drawn()
		var count int
		tb.Eval(`document.querySelectorAll('*').length`, &count)
		if count > 2000 {
			t.Errorf("%s: %d elements for %d frames", where, count, n)
		}
	}
	nodes("at the end")
	tb.Press("g")
	tb.Until(`document.getElementById('row-1')?.classList.contains('selected') && !` + last)
	for i := 1; i < 40; i++ {
		tb.Eval(fmt.Sprintf(`{const g = document.getElementById('grid'); g.scrollTop = g.scrollHeight * %d / 40}`, i), nil)
		tb.Drawn()
	}
	tb.Until(`Number([...document.querySelectorAll('.row:not([hidden])')][0].dataset.seq) > 90000`)
	nodes("after scrolling")
	tb.Press("G")
	tb.Until(last + `?.classList.contains('selected')`)
	var below bool
	tb.Eval(`{const r = `+last+`.getBoundingClientRect(), g = document.getElementById('grid').getBoundingClientRect(); r.top >= g.top && r.bottom <= g.bottom + 1}`, &below)
	if !below {
		t.Error("the last row is not in sight")
	}
	tb.Press("/")
	tb.Eval(`{const s = document.getElementById('search'); s.value = '"word 54321 "'; s.dispatchEvent(new Event('input'))}`, nil)
	tb.Until(`document.getElementById('shown').innerText.startsWith('1 of 100,000')`)
	tb.Press("Enter")
	tb.Until(selected + ` === 54322`)
	tb.Press("x")
	tb.Until(`document.getElementById('shown').innerText.startsWith('100,000 records') && document.getElementById('row-54322')`)
	tb.Press("2")
	tb.Until(`document.querySelectorAll('.conversation article').length > 100`)
}

// TestForgotten has more frames than are kept.
func TestForgotten(t *testing.T) {
	s, tb := serve(t, Options{MaxFrames: 200, File: "f"})
	many(1000, func(r *trace.Record) { s.Feed(r) })
	tb.Until(`document.getElementById('row-1000') && document.getElementById('count-frames').innerText === '200'`)
	tb.Until(`document.getElementById('notes').innerText === 'The first 800 are not kept here; the file has all'`)
	tb.Press("g")
	tb.Until(selected + ` === 801`)
}

func TestStays(t *testing.T) {
	s, tb := serve(t, Options{})
	many(500, s.Record)
	tb.Until(`document.getElementById('row-500')`)
	tb.Press("g", "j")
	many(500, s.Record)
	tb.Until(`document.getElementById('count-frames').innerText === '1,000'`)
	var top int
	tb.Eval(`document.getElementById('grid').scrollTop`, &top)
	if top != 0 {
		t.Errorf("the list moves to %d while somebody reads", top)
	}
	tb.Until(`document.getElementById('newer').innerText.includes('below')`)
	tb.Press("p")
	many(100, s.Record)
	tb.Until(`document.getElementById('newer').innerText === 'paused · 100 new · go on'`)
	tb.Press("f") // goes on, too
	tb.Until(`document.getElementById('row-1100') && document.getElementById('state').innerText === 'live'`)
}

// A relay stands between the page and the server, to be cut.
type relay struct {
	net.Listener
	to string

	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: ln, to: to}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			r.pass(c)
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
		r.set(true)
	})
	return r
}

func (r *relay) pass(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := net.Dial("tcp", r.to)
	if r.down || err != nil {
		c.Close()
		if err == nil {
			d.Close()
		}
		return
	}
	r.conns = append(r.conns, c, d)
	go func() { io.Copy(c, d); c.Close() }()
	go func() { io.Copy(d, c); d.Close() }()
}

// set cuts all connections and refuses others, or lets them through again.
func (r *relay) set(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

func TestReconnect(t *testing.T) {
	s := newServer(t, Options{})
	r := newRelay(t, s.host)
	s.host = r.Addr().String() // what the browser says
	tb := chromium.Open(t, s.URL())
	many(100, s.Record)
	tb.Until(`document.getElementById('row-100')`)
	r.set(true)
	tb.Until(`document.getElementById('state').innerText.startsWith('no connection')`)
	many(100, s.Record)
	r.set(false)
	tb.Until(`document.getElementById('row-200') && document.getElementById('state').innerText === 'live'`)
	tb.Until(`document.getElementById('count-frames').innerText === '200'`)
}

// TestGone ends the server: the page keeps what it has.
func TestGone(t *testing.T) {
	s, tb := serve(t, demoOptions(), demo()...)
	tb.Until(`document.getElementById('row-47')`)
	s.Close()
	tb.Until(`document.getElementById('state').innerText.startsWith('ended')`)
	tb.Press("2")
	tb.Until(`document.querySelector('.conversation')?.innerText.includes('Fixed.')`)
	tb.Press("1", "g", "j")
	tb.Until(`document.querySelector('#detail .json')?.innerText.includes('clientCapabilities')`)
	// Another one at its address is not for this page.
	again, err := New(Options{Addr: s.host})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	tb.Do("Page.reload", chromium.Object{}, nil)
	tb.Until(`document.body.innerText.includes('open the address that was printed')`)
	tb.Wrong()
}

func TestEmpty(t *testing.T) {
	s, tb := serve(t, Options{Title: "nobody"})
	tb.Until(`document.getElementById('empty').innerText.includes('Nothing yet')`)
	tb.Press("j", "k", "g", "G", "n", "a", "c", "Enter", "Escape")
	tb.Press("2")
	tb.Until(`document.getElementById('transcript').innerText.includes('No session')`)
	tb.Press("3")
	tb.Until(`document.getElementById('findings').innerText.includes('No violations')`)
	tb.Press("1")
	s.End()
	tb.Until(`document.getElementById('empty').innerText.includes('Nothing was said')`)
}

func TestLongFrame(t *testing.T) {
	long.Test(t)
	text := ""
	for i := range 9000 {
		text += fmt.Sprintf("line %d\\n", i)
	}
	s, tb := serve(t, Options{}, said(0, `>{"method":"x","params":{"n":12345678901234567890.00,"n":1,"t":"`+text+`","e":"\u202e"}}`))
	tb.Until(`document.getElementById('row-1')`)
	tb.Press("j")
	tb.Until(`document.querySelector('#detail .note')?.innerText.includes('Load all')`)
	tb.Eval(`document.querySelector('#detail .note button').click()`, nil)
	tb.Until(`document.querySelector('#detail .json')?.innerText.includes('12345678901234567890.00')`)
	tb.Until(`document.querySelectorAll('#detail .key').length === 6`) // both of a member that comes twice
	tb.Eval(`[...document.querySelectorAll('#detail .string button')].forEach((b) => b.click())`, nil)
	tb.Until(`document.querySelector('#detail pre').innerText.includes('line 8999')`)
	_ = s
}
