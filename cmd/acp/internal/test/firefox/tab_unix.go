//go:build unix

package firefox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// An Object is a JSON object.
type Object = map[string]any

// A Tab is a page in a profile of its own.
type Tab struct {
	t       *testing.T
	f       *firefox
	context string

	// Guarded by the browser's lock.
	requests []string
	errors   []string // what the page's console says is wrong
}

// Open opens an address in a new tab, or skips the test where there is no browser.
func Open(t *testing.T, url string) *Tab {
	t.Helper()
	Need(t)
	tb := &Tab{t: t, f: browser.f}
	var user struct{ UserContext string }
	tb.do("browser.createUserContext", Object{}, &user)
	t.Cleanup(func() { _ = tb.f.call("browser.removeUserContext", user, nil) })
	var tab struct{ Context string }
	tb.do("browsingContext.create", Object{"type": "tab", "userContext": user.UserContext}, &tab)
	tb.context = tab.Context
	tb.f.mu.Lock()
	tb.f.tabs[tb.context] = tb
	tb.f.mu.Unlock()
	tb.Go(url)
	return tb
}

func (tb *Tab) do(method string, params, result any) {
	tb.t.Helper()
	if err := tb.f.call(method, params, result); err != nil {
		tb.t.Fatal(err)
	}
}

// Go opens another address in the tab.
func (tb *Tab) Go(url string) {
	tb.t.Helper()
	tb.do("browsingContext.navigate", Object{"context": tb.context, "url": url, "wait": "interactive"}, nil)
}

// Reload loads the page again.
func (tb *Tab) Reload() {
	tb.t.Helper()
	tb.do("browsingContext.reload", Object{"context": tb.context, "wait": "interactive"}, nil)
}

// Size sets the size of the window.
func (tb *Tab) Size(width, height int) {
	tb.t.Helper()
	tb.do("browsingContext.setViewport", Object{"context": tb.context, "viewport": Object{"width": width, "height": height}}, nil)
}

// Wrong returns what the console has said since the last time.
func (tb *Tab) Wrong() []string {
	tb.f.mu.Lock()
	defer tb.f.mu.Unlock()
	list := tb.errors
	tb.errors = nil
	return list
}

// Requests returns the addresses of everything that the page has asked for.
func (tb *Tab) Requests() []string {
	tb.f.mu.Lock()
	defer tb.f.mu.Unlock()
	return slices.Clone(tb.requests)
}

// evaluate returns what an expression gives, once its promise is kept.
func (tb *Tab) evaluate(expression string, result any) error {
	var r struct {
		Type             string
		Result           struct{ Value json.RawMessage }
		ExceptionDetails struct{ Text string }
	}
	err := tb.f.call("script.evaluate", Object{
		"expression": "Promise.resolve((" + expression + ")).then((x) => JSON.stringify(x === undefined ? null : x))",
		"target":     Object{"context": tb.context}, "awaitPromise": true, "resultOwnership": "none",
	}, &r)
	switch {
	case err != nil:
		return err
	case r.Type != "success":
		return fmt.Errorf("%s: %s", expression, r.ExceptionDetails.Text)
	case result == nil:
		return nil
	}
	var text string
	if err := json.Unmarshal(r.Result.Value, &text); err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), result)
}

// Eval returns what an expression gives, once its promise is kept.
func (tb *Tab) Eval(expression string, result any) {
	tb.t.Helper()
	if err := tb.evaluate(expression, result); err != nil {
		tb.t.Fatal(err)
	}
}

// Until waits until an expression is true.
func (tb *Tab) Until(expression string) {
	tb.t.Helper()
	var ok bool
	for end := time.Now().Add(limit); !ok && time.Now().Before(end); {
		// A page that loads has no promises to keep: then ask again.
		_ = tb.evaluate(`new Promise((done) => {
			const end = performance.now() + 5000;
			const look = () => {
				let ok = false;
				try { ok = !!(`+expression+`); } catch {}
				if (ok || performance.now() > end) done(ok); else setTimeout(look, 10);
			};
			look();
		})`, &ok)
	}
	if !ok {
		var text string
		tb.Eval("((t) => t.length > 3000 ? t.slice(0, 1500) + \" … \" + t.slice(-1500) : t)(document.body.innerText)", &text)
		tb.t.Fatalf("it never comes to this: %s\nthe page: %s\nthe console: %s", expression, text, strings.Join(tb.Wrong(), "\n"))
	}
}

// keys are the names of keys that are not characters, as WebDriver writes them.
var keys = map[string]string{"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "ArrowDown": "\ue015", "ArrowUp": "\ue013"}

// Press types keys: a character, or a name such as Enter.
func (tb *Tab) Press(names ...string) {
	tb.t.Helper()
	var actions []Object
	for _, name := range names {
		key := name
		if k, ok := keys[name]; ok {
			key = k
		}
		actions = append(actions, Object{"type": "keyDown", "value": key}, Object{"type": "keyUp", "value": key})
	}
	tb.do("input.performActions", Object{"context": tb.context, "actions": []Object{{"type": "key", "id": "keyboard", "actions": actions}}}, nil)
}

// Type puts the focus on an element and writes a text in it, as people do.
func (tb *Tab) Type(selector, text string) {
	tb.t.Helper()
	tb.Until(fmt.Sprintf("(document.querySelector(%q).focus(), document.activeElement === document.querySelector(%q))", selector, selector))
	tb.Press(strings.Split(text, "")...)
}

// Click clicks an element.
func (tb *Tab) Click(selector string) {
	tb.t.Helper()
	tb.Until(fmt.Sprintf("document.querySelector(%q) && !document.querySelector(%q).disabled", selector, selector))
	tb.Eval(fmt.Sprintf("void document.querySelector(%q).click()", selector), nil)
}
