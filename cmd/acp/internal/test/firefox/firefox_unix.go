//go:build unix

package firefox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// limit is how long anything may take in the browser. It only ends tests that fail.
const limit = 60 * time.Second

// settings keep the browser from asking anybody but the page's server.
const settings = `user_pref("app.normandy.enabled", false);
user_pref("app.update.disabledForTesting", true);
user_pref("browser.safebrowsing.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("dom.push.connection.enabled", false);
user_pref("extensions.systemAddon.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "");
user_pref("toolkit.telemetry.server", "");
`

// A firefox is a browser without a window, driven by WebDriver BiDi.
type firefox struct {
	cmd  *exec.Cmd
	home string
	ws   *websocket.Conn
	work sync.WaitGroup

	mu    sync.Mutex
	last  int
	calls map[int]chan reply
	tabs  map[string]*Tab
	err   error
}

type reply struct {
	Type    string
	Result  json.RawMessage
	Error   string
	Message string
}

var browser struct {
	once sync.Once
	f    *firefox
	skip string
	err  error
}

// Close ends the browser. TestMain calls it when all tests have ended.
func Close() {
	if browser.f != nil {
		browser.f.close()
	}
}

// find returns the program, or "".
func find() string {
	for _, name := range []string{os.Getenv("ACP_FIREFOX"), "firefox-esr", "firefox"} {
		if name == "" {
			continue
		}
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	return ""
}

func start(path string) (_ *firefox, err error) {
	home, err := os.MkdirTemp("", "acp-web-")
	if err != nil {
		return nil, err
	}
	f := &firefox{home: home, calls: map[int]chan reply{}, tabs: map[string]*Tab{}}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	profile := filepath.Join(home, "profile")
	if err := errors.Join(os.Mkdir(profile, 0o700), os.WriteFile(filepath.Join(profile, "user.js"), []byte(settings), 0o600)); err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "XDG_RUNTIME_DIR="+home, "DBUS_SESSION_BUS_ADDRESS=", "LANG=C.UTF-8")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f.cmd = cmd
	lines := bufio.NewReader(stderr)
	address, said := "", ""
	for address == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("firefox has not started: %w: %s", err, said)
		}
		said += line
		_, address, _ = strings.Cut(strings.TrimSpace(line), "WebDriver BiDi listening on ")
	}
	f.work.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if f.ws, _, err = websocket.Dial(ctx, address+"/session", nil); err != nil {
		return nil, err
	}
	f.ws.SetReadLimit(64 << 20)
	f.work.Go(f.read)
	if err := f.call("session.new", Object{"capabilities": Object{}}, nil); err != nil {
		return nil, err
	}
	return f, f.call("session.subscribe", Object{"events": []string{"log.entryAdded", "network.beforeRequestSent"}}, nil)
}

func (f *firefox) close() {
	if f.cmd != nil {
		_ = syscall.Kill(-f.cmd.Process.Pid, syscall.SIGKILL)
	}
	if f.ws != nil {
		_ = f.ws.CloseNow()
	}
	f.work.Wait()
	if f.cmd != nil {
		_ = f.cmd.Wait()
	}
	_ = os.RemoveAll(f.home)
}

// read takes answers and events until the browser is gone.
func (f *firefox) read() {
	for {
		_, data, err := f.ws.Read(context.Background())
		if err != nil {
			f.mu.Lock()
			f.err = errors.New("the browser is gone")
			for _, ch := range f.calls {
				close(ch)
			}
			f.calls = map[int]chan reply{}
			f.mu.Unlock()
			return
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			reply
		}
		if json.Unmarshal(data, &m) != nil {
			continue
		}
		if m.Type == "event" {
			f.event(m.Method, m.Params)
			continue
		}
		f.mu.Lock()
		if ch := f.calls[m.ID]; ch != nil {
			ch <- m.reply
			delete(f.calls, m.ID)
		}
		f.mu.Unlock()
	}
}

func (f *firefox) event(method string, params json.RawMessage) {
	var p struct {
		Context string // of a request
		Request struct{ URL string }
		Source  struct{ Context string } // of a line of the console
		Level   string
		Text    string
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch tb := f.tabs[p.Context+p.Source.Context]; {
	case tb == nil:
	case method == "network.beforeRequestSent":
		tb.requests = append(tb.requests, p.Request.URL)
	case p.Level == "error":
		tb.errors = append(tb.errors, p.Text)
	}
}

// call calls a method of the protocol.
func (f *firefox) call(method string, params, result any) error {
	f.mu.Lock()
	if f.err != nil {
		f.mu.Unlock()
		return f.err
	}
	f.last++
	id, ch := f.last, make(chan reply, 1)
	f.calls[id] = ch
	f.mu.Unlock()
	data, err := json.Marshal(Object{"id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := f.ws.Write(ctx, websocket.MessageText, data); err != nil {
		return err
	}
	select {
	case r, ok := <-ch:
		switch {
		case !ok:
			return errors.New("the browser is gone")
		case r.Type != "success":
			return fmt.Errorf("%s: %s: %s", method, r.Error, r.Message)
		case result != nil:
			return json.Unmarshal(r.Result, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s takes too long", method)
	}
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
			browser.skip = "no firefox is installed (apt-get install firefox-esr): the page was not tested in it"
			return
		}
		browser.f, browser.err = start(path)
	})
	if browser.err != nil {
		t.Fatal(browser.err)
	}
	if browser.skip != "" {
		t.Skip(browser.skip)
	}
}
