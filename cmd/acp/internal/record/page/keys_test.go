//go:build unix

package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/trace"
)

const (
	selected = `Number(document.querySelector('.row.selected')?.dataset.seq)`
	focused  = `(document.activeElement.id || document.activeElement.className)`
)

// TestKeyboard goes through everything without a mouse.
func TestKeyboard(t *testing.T) {
	long.Test(t)
	_, tb := serve(t, demoOptions(), demo()...)
	tb.Until(`document.querySelectorAll('.row').length > 10 && document.activeElement.id === 'grid'`)
	for _, step := range []struct {
		keys string // apart from each other
		want string
	}{
		{"g", selected + " === 1"},
		{"j j ArrowDown", selected + " === 4"},
		{"k", selected + " === 3"},
		{"ArrowUp", selected + " === 2"},
		{"a", selected + " === 4"}, // from a request to its answer
		{"a", selected + " === 2"},
		{"Enter", focused + ` === 'detail' && document.querySelector('#detail h2').innerText.includes('initialize')`},
		{"Escape", focused + " === 'grid'"},
		{"n", selected + " === 33"},
		{"n", selected + " === 39 && document.querySelector('#detail .finding').innerText.includes('session/set_title')"},
		{"N", selected + " === 33 && document.querySelector('#detail .here')?.innerText.includes('toolu_0XX')"},
		{"G", selected + " === 47"},
		{"PageUp", selected + " < 47"},
		{"Home", selected + " === 1"},
		{"PageDown", selected + " > 5"},
		{"End", selected + " === 47"},
		{"/ s e p a r a t o r", focused + " === 'search' && document.getElementById('shown').innerText.startsWith('6 of 47')"},
		{"Enter", focused + " === 'grid' && " + selected + " === 8"},
		{"x", "document.getElementById('shown').innerText.startsWith('47 rec') && " + selected + " === 8"},
		{"/ m e t h o d : f s / Escape", focused + " === 'grid' && document.getElementById('search').value === ''"},
		{"f", "document.getElementById('follow').getAttribute('aria-pressed') === 'true'"},
		{"k", "document.getElementById('follow').getAttribute('aria-pressed') === 'false'"},
		{"p", "document.getElementById('state').innerText === 'paused'"},
		{"p", "document.getElementById('state').innerText === 'live'"},
		{"2", "document.activeElement.getAttribute('role') === 'log' && document.querySelectorAll('.conversation article').length > 5"},
		{"Escape", focused + " === 'grid'"},
		{"3", "document.activeElement.innerText.includes('#39')"},
		{"Enter", focused + " === 'grid' && " + selected + " === 39"},
		{"?", "document.getElementById('keys').open"},
		{"j", selected + " === 39"}, // the list of keys has the keyboard
		{"Enter", "!document.getElementById('keys').open"},
	} {
		tb.Press(strings.Fields(step.keys)...)
		tb.Until(step.want)
	}
	// Tab goes through what can be used, in the order it is seen.
	tb.Eval(`document.getElementById('tab-frames').focus()`, nil)
	order := []string{"tab-frames"}
	for range 40 {
		tb.Press("Tab")
		var at string
		tb.Eval(`document.activeElement.id || document.activeElement.dataset.value || document.activeElement.tagName`, &at)
		if at == "BODY" || at == order[0] {
			break
		}
		order = append(order, at)
		var seen bool
		tb.Eval(`document.activeElement.matches(':focus-visible')`, &seen)
		if !seen {
			t.Errorf("the focus on %s cannot be seen", at)
		}
	}
	want := "tab-frames pause follow help search > < request answer notification other errors findings method session grid newer divider"
	if got := strings.Join(order, " "); !strings.HasPrefix(got, want) {
		t.Errorf("Tab goes %s\nwant first %s", got, want)
	}
}

func TestFilters(t *testing.T) {
	long.Test(t)
	_, tb := serve(t, demoOptions(), demo()...)
	tb.Until(`document.querySelectorAll('.row').length > 10`)
	shown := func(want string) {
		t.Helper()
		tb.Until(`document.getElementById('shown').innerText.startsWith(` + quote(want) + `)`)
	}
	click := func(value string) { tb.Eval(`document.querySelector('[data-value="`+value+`"]').click()`, nil) }
	choose := func(id, value string) {
		tb.Eval(fmt.Sprintf(`{const s = document.getElementById(%q); s.value = %q; s.dispatchEvent(new Event('change'))}`, id, value), nil)
	}
	click("errors")
	shown("3 of") // the refusal, what was refused, and the line that is not JSON
	click("errors")
	click("findings")
	shown("3 of")
	click("findings")
	click("<")
	click("other")
	shown("9 of")
	click("<")
	click("other")
	choose("method", "fs/read_text_file")
	shown("2 of")
	choose("method", "")
	choose("session", "sess_8f2c41d07be6")
	shown("41 of")
	tb.Press("x")
	shown("47 records")
	for query, want := range map[string]string{
		`toolu_01B`: "3 of", `toolu_01B -permission`: "2 of", `method:session/prompt`: "2 of", `"thousands separators"`: "2 of",
		`code:-32601`: "1 of", `id:5 method:title`: "2 of", `nothing like it`: "0 of", `-a`: "", `announced`: "1 of",
	} {
		tb.Eval(fmt.Sprintf(`{const s = document.getElementById('search'); s.value = %q; s.dispatchEvent(new Event('input'))}`, query), nil)
		if want != "" {
			shown(want)
		}
	}
}

// TestHostile shows everything an attacker could say in every place.
func TestHostile(t *testing.T) {
	const evil = `"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script><svg/onload=pwned=1>{{7*7}}javascript:pwned=1\u202e\u0000` + "\u202eevil\u2066"
	q := quote(evil)
	recs := []*trace.Record{
		said(0, `>{"id":0,"method":"initialize","params":{"protocolVersion":1}}`),
		said(0, `<{"id":0,"result":{"protocolVersion":1,"agentInfo":{"name":`+q+`,"version":`+q+`}}}`),
		said(0, `>{"id":`+q+`,"method":"session/new","params":{"cwd":`+q+`}}`),
		said(0, `<{"id":`+q+`,"result":{"sessionId":`+q+`}}`),
		said(0, `<{"id":1,"method":`+q+`,"params":{`+q+`:`+q+`,"__proto__":{"pwned":1},"constructor":1}}`),
		said(0, `>{"id":1,"error":{"code":1,"message":`+q+`}}`),
		said(0, "!"+evil), said(0, "<"+evil), said(0, "*"+evil),
	}
	for _, u := range []string{
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":` + q + `}}`,
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":` + q + `}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":` + q + `,"mimeType":` + q + `}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","name":` + q + `,"uri":"javascript:pwned=1"}}`,
		`{"sessionUpdate":"tool_call","toolCallId":` + q + `,"title":` + q + `,"kind":` + q + `,"status":` + q + `,"locations":[{"path":` + q + `}],"rawInput":` + q + `,"content":[{"type":"diff","path":` + q + `,"oldText":` + q + `,"newText":"x"}]}`,
		`{"sessionUpdate":"plan","entries":[{"content":` + q + `,"priority":"high","status":` + q + `}]}`,
		`{"sessionUpdate":"session_info_update","title":` + q + `}`,
		`{"sessionUpdate":` + q + `,"x":` + q + `}`,
	} {
		recs = append(recs, said(0, `<{"method":"session/update","params":{"sessionId":`+q+`,"update":`+u+`}}`))
	}
	recs = append(recs, said(0, `<{"id":2,"method":"session/request_permission","params":{"sessionId":`+q+`,"toolCall":{"toolCallId":"c","title":`+q+`},"options":[{"optionId":`+q+`,"name":`+q+`,"kind":"allow_once"}]}}`))
	s, tb := serve(t, Options{Title: evil, File: evil, Recorded: true, Header: trace.Header{Command: []string{evil}, Tool: evil}}, recs...)
	tb.Until(fmt.Sprintf(`document.getElementById('count-frames').innerText === '%d'`, len(recs)))
	for range recs {
		tb.Press("j")
	}
	tb.Press("2")
	tb.Until(`document.querySelectorAll('.conversation article').length > 4`)
	tb.Press("3")
	tb.Until(`document.querySelectorAll('#findings li').length > 10 && document.getElementById('findings').innerText.includes('onerror')`)
	var found struct {
		Pwned, Hidden bool
		Elements      int
	}
	tb.Eval(`({
		pwned: window.pwned !== undefined || ({}).pwned !== undefined,
		elements: document.querySelectorAll('img, svg:not(.icon), .icon :not(path), script:not([src="/tap.js"]), iframe, a, object, embed, style, [onerror], [onload]').length,
		hidden: /[\u202a-\u202e\u2066-\u2069\u0000]/.test(document.body.textContent + document.title),
	})`, &found)
	if found.Pwned || found.Elements > 0 {
		t.Errorf("markup got through: %+v", found)
	}
	if found.Hidden {
		t.Error("characters that turn text around got through")
	}
	if len(tb.Requests()) < 5 {
		t.Errorf("the page asks for %q only", tb.Requests())
	}
	for _, r := range tb.Requests() {
		if !strings.HasPrefix(r, "http://"+s.host+"/") {
			t.Errorf("the page asks for %s", r)
		}
	}
}

// TestFound holds that what was looked for stays in sight, also on a page that follows what comes, and
// however soon Enter comes.
func TestFound(t *testing.T) {
	s, tb := serve(t, Options{})
	many(500, s.Record)
	tb.Until(`document.getElementById('row-500') && document.getElementById('follow').getAttribute('aria-pressed') === 'true'`)
	tb.Press("/")
	tb.Eval(`{
		const search = document.getElementById('search');
		search.value = '"word 54 "';
		search.dispatchEvent(new Event('input'));
		search.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true}));
	}`, nil)
	tb.Until(selected + ` === 55 && document.getElementById('shown').innerText.startsWith('1 of 500')`)
	tb.Press("x")
	many(100, s.Record)
	tb.Until(`document.getElementById('shown').innerText.startsWith('600 records') && document.getElementById('follow').getAttribute('aria-pressed') === 'false'`)
	tb.Until(selected + ` === 55 && document.getElementById('row-55').getBoundingClientRect().top > document.getElementById('grid').getBoundingClientRect().top`)
}

// TestCutMessage says of a message that is too long to be kept that its end is missing, and of nothing
// that its beginning is.
func TestCutMessage(t *testing.T) {
	var recs []*trace.Record
	for i := range 20 {
		recs = append(recs, said(i, chunk("s", "agent_message_chunk", strings.Repeat("words ", 6000))))
	}
	recs = append(recs, said(30, chunk("s", "agent_thought_chunk", "at last")))
	_, tb := serve(t, Options{}, recs...)
	tb.Until(`document.getElementById('row-21')`)
	tb.Press("2")
	tb.Until(`document.querySelectorAll('.conversation article').length === 2`)
	var notes []string
	tb.Eval(`[...document.querySelectorAll('.conversation .note')].map((n) => n.textContent)`, &notes)
	if len(notes) != 1 || !strings.HasSuffix(notes[0], " of this were too much to keep.") {
		t.Errorf("%q", notes)
	}
}
