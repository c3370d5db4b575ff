//go:build !windows

// Package terminal drives a program on a pseudo-terminal, as a person would,
// and reads its screen as text. It is for tests only.
package terminal

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"github.com/goacp/acp/internal/plaintext"
)

// Patience is how long [Screen.Wait] and the like wait. It is long, since it is
// only reached by a test that fails.
const Patience = time.Minute

// maxOutput bounds what is kept of the program's output.
const maxOutput = 16 << 20

// A Screen is a program on a terminal. Its methods may be called by the
// goroutine of the test; when that ends the program is killed.
type Screen struct {
	tb  testing.TB
	cmd *exec.Cmd
	tty *os.File

	mu      sync.Mutex
	vt      vt10x.Terminal
	held    []byte // the beginning of a control sequence or a rune
	last    []byte // the rune before what is written next, if there is one
	out     bytes.Buffer
	cols    int
	rows    int
	changed chan struct{} // closed when something was written

	ended chan struct{}
	err   error           // of the program, after ended
	shown <-chan struct{} // closed when everything is on the screen, and nothing more comes

	lag   time.Duration
	kitty bool          // keys are sent as the kitty protocol has them
	typed chan lateText // nil without a delay
}

// A lateText is on its way.
type lateText struct {
	at   time.Time
	text []byte
}

// late carries texts to f, each after a delay and in order, until the channel is closed.
func late(in <-chan lateText, f func([]byte)) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		for t := range in {
			time.Sleep(time.Until(t.at))
			f(t.text)
		}
	}()
	return done
}

// An Option changes a terminal.
type Option func(*options)

type options struct {
	lag   time.Duration
	kitty bool
}

// Lag delays what is typed and what is written, as a slow line does.
func Lag(d time.Duration) Option { return func(o *options) { o.lag = d } }

// Kitty makes the terminal speak the keyboard protocol of kitty.
func Kitty() Option { return func(o *options) { o.kitty = true } }

// Start starts a program on a terminal of the given size.
func Start(tb testing.TB, cmd *exec.Cmd, cols, rows int, opts ...Option) *Screen {
	tb.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s := &Screen{tb: tb, kitty: o.kitty, lag: o.lag, cmd: cmd, cols: cols, rows: rows, changed: make(chan struct{}), ended: make(chan struct{})}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
	if err != nil {
		tb.Fatalf("start %s on a terminal: %v", cmd.Path, err)
	}
	s.tty = tty
	s.vt = vt10x.New(vt10x.WithSize(cols, rows), vt10x.WithWriter(tty))
	read := make(chan struct{})
	shown := make(chan struct{})
	write, last := s.write, func() { close(shown) }
	if o.lag > 0 {
		s.typed = make(chan lateText, 1<<12)
		typed := late(s.typed, func(p []byte) { _, _ = tty.Write(p) })
		tb.Cleanup(func() { close(s.typed); <-typed })
		output := make(chan lateText, 1<<16)
		shown = late(output, s.write)
		write = func(p []byte) { output <- lateText{time.Now().Add(o.lag), bytes.Clone(p)} }
		last = func() { close(output) }
		tb.Cleanup(func() { <-shown })
	}
	s.shown = shown
	go func() {
		defer close(read)
		defer last()
		buf := make([]byte, 64<<10)
		for {
			n, err := tty.Read(buf)
			write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	go func() {
		s.err = cmd.Wait()
		close(s.ended)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.ended
		_ = tty.Close()
		<-read
	})
	return s
}

// strange are control sequences that the emulator takes for others: those of newer keyboard
// protocols, which it does not know.
var strange = regexp.MustCompile(`\x1b\[[<=>?][0-9;]*u|\x1b\[>[0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p`)

// unfinished is a control sequence that continues in what is read next.
var unfinished = regexp.MustCompile(`\x1b(\[[0-9;<=>?$ ]*)?$`)

func (s *Screen) write(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := maxOutput - s.out.Len(); room > 0 {
		s.out.Write(p[:min(room, len(p))])
	}
	all := append(s.held, p...)
	s.held = nil
	if at := unfinished.FindIndex(all); at != nil {
		s.held = bytes.Clone(all[at[0]:])
		all = all[:at[0]]
	} else if n := plaintext.Unfinished(all); n > 0 {
		s.held = bytes.Clone(all[len(all)-n:])
		all = all[:len(all)-n]
	}
	if s.kitty && bytes.Contains(all, []byte("\x1b[?u")) { // which asks for the protocol
		go s.send([]byte("\x1b[?1u"))
	}
	_, _ = s.vt.Write(s.repeated(strange.ReplaceAll(all, nil)))
	close(s.changed)
	s.changed = make(chan struct{})
}

// repeat is a control sequence that writes the rune before it again, as often as it says. Where the emulator does not
// carry it out, everything that is placed by what was written last comes to a wrong place.
var repeat = regexp.MustCompile(`\x1b\[([0-9]*)b`)

// repeated returns p with the runes that repeat stands for in its place.
func (s *Screen) repeated(p []byte) []byte {
	var out []byte
	for {
		at := repeat.FindSubmatchIndex(p)
		end := len(p)
		if at != nil {
			end = at[0]
		}
		if end > 0 {
			_, n := utf8.DecodeLastRune(p[:end])
			s.last = bytes.Clone(p[end-n : end])
		}
		out = append(out, p[:end]...)
		if at == nil {
			return out
		}
		n := 1
		if digits := p[at[2]:at[3]]; len(digits) > 0 {
			n, _ = strconv.Atoi(string(digits))
		}
		out = append(out, bytes.Repeat(s.last, min(n, s.cols*s.rows))...)
		p = p[at[1]:]
	}
}

// Text returns the screen: its lines without trailing spaces.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text()
}

func (s *Screen) text() string {
	var b strings.Builder
	for y := range s.rows {
		line := make([]rune, 0, s.cols)
		for x := range s.cols {
			c := s.vt.Cell(x, y).Char
			if c == 0 {
				c = ' '
			}
			line = append(line, c)
		}
		b.WriteString(strings.TrimRight(string(line), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// Output returns everything the program has written.
func (s *Screen) Output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// Alternate reports whether the alternate screen is shown.
func (s *Screen) Alternate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vt.Mode()&vt10x.ModeAltScreen != 0
}

// Cursor returns where the cursor is, and whether it can be seen.
func (s *Screen) Cursor() (x, y int, visible bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.vt.Cursor()
	return c.X, c.Y, s.vt.CursorVisible()
}

// Title returns the title of the window.
func (s *Screen) Title() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vt.Title()
}

// Until waits until the screen is as wanted, and fails the test when that
// takes too long or the program ends before; what says what was waited for.
func (s *Screen) Until(what string, ok func(text string) bool) {
	s.tb.Helper()
	timeout := time.After(Patience)
	for {
		s.mu.Lock()
		text, changed := s.text(), s.changed
		s.mu.Unlock()
		if ok(text) {
			return
		}
		select {
		case <-changed:
			continue
		case <-s.shown: // the program has ended, and its last words have been read
		case <-timeout:
		}
		if text = s.Text(); !ok(text) {
			s.tb.Fatalf("waited in vain for %s; the screen is\n%s", what, text)
		}
		return
	}
}

// Eventually reports whether the screen matches within a time.
func (s *Screen) Eventually(within time.Duration, ok func(text string) bool) bool {
	timeout := time.After(within)
	for {
		s.mu.Lock()
		text, changed := s.text(), s.changed
		s.mu.Unlock()
		if ok(text) {
			return true
		}
		select {
		case <-changed:
		case <-timeout:
			return false
		}
	}
}

// Wait waits until all of the texts are on the screen.
func (s *Screen) Wait(texts ...string) {
	s.tb.Helper()
	s.Until(fmt.Sprintf("%q", texts), func(text string) bool {
		for _, t := range texts {
			if !strings.Contains(text, t) {
				return false
			}
		}
		return true
	})
}

// Find waits until the screen has what a regular expression matches, and returns
// its first group.
func (s *Screen) Find(expr string) string {
	s.tb.Helper()
	re := regexp.MustCompile(expr)
	var found string
	s.Until(expr, func(text string) bool {
		m := re.FindStringSubmatch(text)
		if m != nil {
			found = m[1]
		}
		return m != nil
	})
	return found
}

// Gone waits until none of the texts is on the screen.
func (s *Screen) Gone(texts ...string) {
	s.tb.Helper()
	s.Until(fmt.Sprintf("the end of %q", texts), func(text string) bool {
		for _, t := range texts {
			if strings.Contains(text, t) {
				return false
			}
		}
		return true
	})
}

// keys are the names of keys that [Screen.Press] knows in addition to ctrl+LETTER and alt+LETTER.
var keys = map[string]string{
	"enter": "\r", "esc": "\x1b", "tab": "\t", "backspace": "\x7f", "space": " ",
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D",
	"home": "\x1b[H", "end": "\x1b[F", "pgup": "\x1b[5~", "pgdown": "\x1b[6~",
	"shift+tab": "\x1b[Z", "alt+enter": "\x1b\r", "f1": "\x1bOP",
	"focus": "\x1b[I", "blur": "\x1b[O",
}

// kittyKey returns what a terminal sends for a key that is ambiguous without the protocol of kitty.
func kittyKey(name string) (code string, ok bool) {
	special := map[string]string{"esc": "\x1b[27u", "shift+tab": "\x1b[9;2u", "alt+enter": "\x1b[13;3u", "shift+enter": "\x1b[13;2u"}
	if code, ok = special[name]; ok {
		return code, true
	}
	for prefix, mod := range map[string]int{"ctrl+": 5, "alt+": 3} {
		if c, is := strings.CutPrefix(name, prefix); is && len(c) == 1 {
			return fmt.Sprintf("\x1b[%d;%du", c[0], mod), true
		}
	}
	return "", false
}

// Press presses keys by their names.
func (s *Screen) Press(names ...string) {
	s.tb.Helper()
	for _, n := range names {
		code, ok := keys[n]
		if c, isCtrl := strings.CutPrefix(n, "ctrl+"); !ok && isCtrl && len(c) == 1 {
			code, ok = string(rune(c[0]&0x1f)), true
		}
		if c, isAlt := strings.CutPrefix(n, "alt+"); !ok && isAlt && len(c) == 1 {
			code, ok = "\x1b"+c, true
		}
		if k, inKitty := kittyKey(n); inKitty && s.kitty {
			code, ok = k, true
		}
		if !ok {
			s.tb.Fatalf("no key is called %q", n)
		}
		s.Type(code)
	}
}

// Type types text.
func (s *Screen) Type(text string) {
	s.tb.Helper()
	if err := s.send([]byte(text)); err != nil {
		s.tb.Fatalf("type: %v; the screen is\n%s", err, s.Text())
	}
}

// send sends to the program what a terminal sends.
func (s *Screen) send(text []byte) error {
	if s.typed != nil {
		s.typed <- lateText{time.Now().Add(s.lag), text}
		return nil
	}
	_, err := s.tty.Write(text)
	return err
}

// Paste pastes text as terminals do it for programs that ask for that.
func (s *Screen) Paste(text string) {
	s.tb.Helper()
	s.Type("\x1b[200~" + text + "\x1b[201~")
}

// Resize changes the size of the terminal.
func (s *Screen) Resize(cols, rows int) {
	s.tb.Helper()
	s.mu.Lock()
	s.cols, s.rows = cols, rows
	s.vt.Resize(cols, rows)
	s.mu.Unlock()
	if err := pty.Setsize(s.tty, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		s.tb.Fatalf("resize: %v", err)
	}
}

// Signal sends the program a signal. It may be called from any goroutine.
func (s *Screen) Signal(sig syscall.Signal) {
	s.tb.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.tb.Errorf("signal: %v", err)
	}
}

// Exit waits for the end of the program and returns its exit status, which is negative if a signal
// ended it.
func (s *Screen) Exit() int {
	s.tb.Helper()
	select {
	case <-s.ended:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(Patience):
		s.tb.Fatalf("the program does not end; the screen is\n%s", s.Text())
		return -1
	}
}

// Restored fails the test if the terminal is not in the state that a shell expects: the main
// screen, a visible cursor, no reports of mouse, focus or paste.
func (s *Screen) Restored() {
	s.tb.Helper()
	s.Until("the main screen", func(string) bool { s.mu.Lock(); defer s.mu.Unlock(); return s.vt.Mode()&vt10x.ModeAltScreen == 0 })
	out := s.Output()
	for _, mode := range []string{"25", "1002", "1003", "1004", "1006", "2004", "1049"} {
		on, off := strings.LastIndex(out, "\x1b[?"+mode+"h"), strings.LastIndex(out, "\x1b[?"+mode+"l")
		if mode == "25" {
			on, off = off, on // the cursor is to be seen
		}
		if on > off {
			s.tb.Errorf("the terminal is left with mode %s changed", mode)
		}
	}
}
