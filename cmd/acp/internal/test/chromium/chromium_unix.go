//go:build unix

package chromium

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// limit is how long anything may take in the browser. It only ends tests that fail.
const limit = 30 * time.Second

// A chromium is a browser without a window, driven through its debugging pipe.
type chromium struct {
	cmd  *exec.Cmd
	home string
	in   io.WriteCloser

	mu    sync.Mutex
	last  int
	calls map[int]chan reply
	tabs  map[string]*Tab
	err   error
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

var browser struct {
	once sync.Once
	c    *chromium
	skip string
	err  error
}

// Close ends the browser. TestMain calls it when all tests have ended.
func Close() {
	if browser.c != nil {
		browser.c.close()
	}
}

// find returns the program, or "".
func find() string {
	for _, name := range []string{os.Getenv("ACP_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	return ""
}

func start(path string) (*chromium, error) {
	home, err := os.MkdirTemp("", "acp-web-")
	if err != nil {
		return nil, err
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &chromium{home: home, in: in, calls: map[int]chan reply{}, tabs: map[string]*Tab{}}
	c.cmd = exec.Command(path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-extensions", "--force-color-profile=srgb", "--font-render-hinting=none", "--lang=en",
		// Nothing but this machine has a name.
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost", "--user-data-dir="+home, "about:blank")
	c.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "DBUS_SESSION_BUS_ADDRESS=")
	c.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = c.cmd.Start()
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		in.Close()
		out.Close()
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	go c.read(out)
	return c, nil
}

func (c *chromium) close() {
	syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	c.cmd.Wait()
	c.in.Close()
	os.RemoveAll(c.home)
}

// read takes answers and events until the browser is gone.
func (c *chromium) read(out io.ReadCloser) {
	defer out.Close()
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			c.mu.Lock()
			c.err = errors.New("the browser is gone")
			for _, ch := range c.calls {
				close(ch)
			}
			c.calls = map[int]chan reply{}
			c.mu.Unlock()
			return
		}
		var m struct {
			ID        int
			SessionID string
			Method    string
			Params    json.RawMessage
			reply
		}
		if json.Unmarshal(bytes.TrimRight(data, "\x00"), &m) != nil {
			continue
		}
		c.mu.Lock()
		if ch := c.calls[m.ID]; ch != nil && m.ID > 0 {
			ch <- m.reply
			delete(c.calls, m.ID)
		}
		t := c.tabs[m.SessionID]
		c.mu.Unlock()
		if t != nil && m.Method != "" {
			t.event(m.Method, m.Params)
		}
	}
}

// call does something in a tab, or in the browser if session is "".
func (c *chromium) call(session, method string, params any, result any) error {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	c.last++
	id, ch := c.last, make(chan reply, 1)
	c.calls[id] = ch
	m := map[string]any{"id": id, "method": method, "params": params}
	if session != "" {
		m["sessionId"] = session
	}
	data, err := json.Marshal(m)
	if err == nil {
		_, err = c.in.Write(append(data, 0))
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r, ok := <-ch:
		switch {
		case !ok:
			return errors.New("the browser is gone")
		case r.Error != nil:
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		case result != nil:
			return json.Unmarshal(r.Result, result)
		}
		return nil
	case <-timer.C:
		return fmt.Errorf("%s takes too long", method)
	}
}

// An Object is a JSON object.
type Object = map[string]any

// A Tab is a page in a profile of its own.
type Tab struct {
	t       *testing.T
	c       *chromium
	session string
	profile string

	registered chan string // the ids of service workers

	mu       sync.Mutex
	requests []string
	errors   []string // what the page's console says is wrong
}

// Open opens an address in a new tab, or skips the test where there is no browser.
func Open(t *testing.T, url string) *Tab {
	t.Helper()
	Need(t)
	c := browser.c
	tb := &Tab{t: t, c: c, registered: make(chan string, 100)}
	var context struct{ BrowserContextID string }
	tb.must(c.call("", "Target.createBrowserContext", Object{}, &context))
	t.Cleanup(func() {
		c.call("", "Target.disposeBrowserContext", Object{"browserContextId": context.BrowserContextID}, nil)
	})
	tb.profile = context.BrowserContextID
	tb.attach(url)
	return tb
}

// Another opens an address in another tab of the same profile, which has the same cookies and storage.
func (tb *Tab) Another(url string) *Tab {
	tb.t.Helper()
	other := &Tab{t: tb.t, c: tb.c, profile: tb.profile, registered: make(chan string, 100)}
	other.attach(url)
	return other
}

// attach makes tb a new tab of its profile.
func (tb *Tab) attach(url string) {
	tb.t.Helper()
	c := tb.c
	var target struct{ TargetID string }
	tb.must(c.call("", "Target.createTarget", Object{"url": "about:blank", "browserContextId": tb.profile}, &target))
	var attached struct{ SessionID string }
	tb.must(c.call("", "Target.attachToTarget", Object{"targetId": target.TargetID, "flatten": true}, &attached))
	tb.session = attached.SessionID
	c.mu.Lock()
	c.tabs[tb.session] = tb
	c.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		tb.Do(domain+".enable", Object{}, nil)
	}
	tb.Size(1280, 800)
	tb.Do("Page.navigate", Object{"url": url}, nil)
}

func (tb *Tab) must(err error) {
	tb.t.Helper()
	if err != nil {
		tb.t.Fatal(err)
	}
}

// Do calls a method of the protocol by which the browser is driven, and decodes its answer into result unless that is nil.
func (tb *Tab) Do(method string, params any, result any) {
	tb.t.Helper()
	tb.must(tb.c.call(tb.session, method, params, result))
}

func (tb *Tab) event(method string, params json.RawMessage) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch method {
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		json.Unmarshal(params, &p)
		tb.requests = append(tb.requests, p.Request.URL)
	case "Runtime.exceptionThrown", "Log.entryAdded":
		tb.errors = append(tb.errors, string(params))
	case "ServiceWorker.workerRegistrationUpdated":
		var p struct {
			Registrations []struct{ RegistrationID string }
		}
		json.Unmarshal(params, &p)
		for _, r := range p.Registrations {
			select {
			case tb.registered <- r.RegistrationID:
			default:
			}
		}
	}
}

// Wrong returns what the console has said since the last time.
func (tb *Tab) Wrong() []string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	list := tb.errors
	tb.errors = nil
	return list
}

// Size sets the size of the window.
func (tb *Tab) Size(width, height int) {
	tb.t.Helper()
	tb.Do("Emulation.setDeviceMetricsOverride", Object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Scheme sets the colours that the page is asked for: light or dark.
func (tb *Tab) Scheme(name string) {
	tb.t.Helper()
	tb.Do("Emulation.setEmulatedMedia", Object{"features": []Object{
		{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"},
	}}, nil)
}

// Eval returns what an expression gives, once its promise is kept.
func (tb *Tab) Eval(expression string, result any) {
	tb.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	tb.Do("Runtime.evaluate", Object{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		tb.t.Fatalf("%s: %s %s", expression, r.ExceptionDetails.Text, r.ExceptionDetails.Exception.Description)
	}
	if result != nil {
		tb.must(json.Unmarshal(r.Result.Value, result))
	}
}

// Until waits until an expression is true.
func (tb *Tab) Until(expression string) {
	tb.t.Helper()
	tb.UntilFar(expression, "0")
}

// UntilFar waits until an expression is true, for as long as another one, how far that is, has other values.
func (tb *Tab) UntilFar(expression, far string) {
	tb.t.Helper()
	var before json.RawMessage
	for end := time.Now().Add(limit); time.Now().Before(end); {
		// A page that loads has no promises to keep: then ask again.
		var r struct {
			Result struct {
				Value struct {
					OK  bool
					Far json.RawMessage
				}
			}
		}
		err := tb.c.call(tb.session, "Runtime.evaluate", Object{"awaitPromise": true, "returnByValue": true, "expression": `new Promise((done) => {
			const end = performance.now() + 5000;
			const poll = () => {
				let ok = false, far = null;
				try { ok = !!(` + expression + `); } catch {}
				if (!ok && performance.now() < end) return setTimeout(poll, 10);
				try { far = ` + far + `; } catch {}
				done({ok, far});
			};
			poll();
		})`}, &r)
		if err == nil && r.Result.Value.OK {
			return
		}
		if err == nil && !bytes.Equal(before, r.Result.Value.Far) {
			before, end = r.Result.Value.Far, time.Now().Add(limit)
		}
	}
	var text string
	tb.Eval("((t) => t.length > 3000 ? t.slice(0, 1500) + \" … \" + t.slice(-1500) : t)(document.body.innerText)", &text)
	tb.t.Fatalf("it never comes to this: %s\nthe page: %s\nthe console: %s", expression, text, strings.Join(tb.Wrong(), "\n"))
}

// Drawn waits until the page has drawn what is due.
func (tb *Tab) Drawn() {
	tb.t.Helper()
	err := tb.c.call(tb.session, "Runtime.evaluate", Object{"awaitPromise": true, "returnByValue": true, "expression": `
		new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`}, nil)
	if err != nil && strings.Contains(err.Error(), "navigated") { // by a key, for instance: there is another page to be drawn
		return
	}
	tb.must(err)
}

// Press types keys: a character, or a name such as Enter.
func (tb *Tab) Press(keys ...string) {
	tb.t.Helper()
	codes := map[string]int{"Backspace": 8, "Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39,
		"PageDown": 34, "PageUp": 33, "Home": 36, "End": 35}
	for _, key := range keys {
		p := Object{"type": "keyDown", "key": key}
		switch code, named := codes[key]; {
		case named:
			p["windowsVirtualKeyCode"], p["code"] = code, key
			if key == "Enter" {
				p["text"] = "\r"
			}
		default:
			p["text"] = key
		}
		tb.Do("Input.dispatchKeyEvent", p, nil)
		p["type"] = "keyUp"
		delete(p, "text")
		tb.Do("Input.dispatchKeyEvent", p, nil)
	}
	tb.Drawn()
}

// Shot takes a picture and returns it, in a palette so that it is small.
func (tb *Tab) Shot() []byte {
	tb.t.Helper()
	tb.Drawn()
	var r struct{ Data string }
	tb.Do("Page.captureScreenshot", Object{"format": "png"}, &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	tb.must(err)
	data, err = fewer(data)
	tb.must(err)
	return data
}

// Requests returns the addresses of everything that the page has asked for.
func (tb *Tab) Requests() []string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return slices.Clone(tb.requests)
}

// Need skips a test for which there is no browser, and starts the browser for the others.
func Need(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("tests in a browser are long")
	}
	browser.once.Do(func() {
		path := find()
		if path == "" {
			browser.skip = "no chromium is installed (apt-get install chromium): the page was not tested in a browser"
			return
		}
		browser.c, browser.err = start(path)
	})
	if browser.err != nil {
		t.Fatal(browser.err)
	}
	if browser.skip != "" {
		t.Skip(browser.skip)
	}
}

// Go opens another address in the tab.
func (tb *Tab) Go(url string) {
	tb.t.Helper()
	tb.Do("Page.navigate", Object{"url": url}, nil)
}

// Type puts the focus on an element and writes a text in it, as people do.
func (tb *Tab) Type(selector, text string) {
	tb.t.Helper()
	tb.Until(fmt.Sprintf("(document.querySelector(%q).focus(), document.activeElement === document.querySelector(%q))", selector, selector))
	tb.Do("Input.insertText", Object{"text": text}, nil)
	tb.Drawn()
}

// Click clicks an element.
func (tb *Tab) Click(selector string) {
	tb.t.Helper()
	tb.Until(fmt.Sprintf("document.querySelector(%q) && !document.querySelector(%q).disabled", selector, selector))
	tb.Eval(fmt.Sprintf("void document.querySelector(%q).click()", selector), nil)
	tb.Drawn()
}
