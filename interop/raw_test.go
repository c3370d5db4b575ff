package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/conformance"
)

// What shows the findings is spoken here as plain lines, with nothing of what acp
// check is made of, so that no finding is an error of ours.

const (
	rawLimit   = 30 * time.Second       // for a line that has to come
	rawSilence = 700 * time.Millisecond // in which no line must come
	rawRole    = "raw-agent"
	rawVar     = "ACP_INTEROP_RAW" // directory of the tests, peer, index of the finding, directory of the client, file for the outcome
)

func init() { roles[rawRole] = playRawAgent }

// Every conversation goes as it is written down.
func TestRaw(t *testing.T) {
	need(t)
	if runtime.GOOS == "windows" {
		t.Skip("the peers are started by a shell")
	}
	bin, env := program(t)
	for _, p := range checkedPeers() {
		argv := p.command(t, bin)
		for i, f := range mustFind(t, p.name) {
			if len(f.talk) == 0 {
				continue
			}
			t.Run(p.name+"/"+f.title, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("one\ntwo\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				err := p.rawly(t.Context(), argv, env, dir, i, f)
				if err != nil {
					t.Errorf("%s: %v", f.at, err)
				}
			})
		}
	}
}

// rawly has the conversation of a finding with a peer.
func (p *checked) rawly(ctx context.Context, argv, env []string, dir string, i int, f *finding) error {
	ctx, cancel := context.WithTimeout(ctx, 2*rawLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
	if p.side == "agent" {
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		// A pipe of its own: Wait must not close it while it is read.
		out, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer out.Close()
		cmd.Stdout = w
		err = cmd.Start()
		_ = w.Close()
		if err != nil {
			return err
		}
		s := newSpeaker(toAgent, dir, out, in)
		err = s.play(f.talk)
		_ = in.Close()
		cancel()
		_ = cmd.Wait()
		return err
	}
	outcome := filepath.Join(dir, "outcome")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	cmd.Args = nil
	for _, a := range argv {
		if a == "{agent}" {
			a = self
		}
		cmd.Args = append(cmd.Args, a)
	}
	cmd.Env = append(cmd.Env, roleVar+"="+rawRole, rawVar+"="+strings.Join([]string{here, p.name, strconv.Itoa(i), dir, outcome}, "\n"))
	if err := cmd.Start(); err != nil {
		return err
	}
	over := make(chan struct{})
	go func() { defer close(over); _ = cmd.Wait() }()
	defer func() { cancel(); <-over }()
	for {
		text, err := os.ReadFile(outcome)
		switch {
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("the client has not played it: %w", ctx.Err())
		case err != nil:
			select {
			case <-over: // it may have been the last thing it did
				if text, err = os.ReadFile(outcome); err == nil {
					break
				}
				if _, err := os.Stat(outcome + ".last"); err != nil {
					return errors.New("the client ended before its agent had played it")
				}
				return nil // it is gone, as it has to, and has ended its agent
			case <-time.After(20 * time.Millisecond):
				continue
			}
		}
		if len(text) > 0 {
			return errors.New(string(text))
		}
		return nil
	}
}

// playRawAgent is the agent of a client that is spoken to.
func playRawAgent() error {
	args := strings.Split(os.Getenv(rawVar), "\n")
	if err := os.Chdir(args[0]); err != nil {
		return err
	}
	all, err := findings(args[1])
	if err != nil {
		return err
	}
	i, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var text string
	s := newSpeaker(toClient, args[3], os.Stdin, os.Stdout)
	s.last = func() error { return os.WriteFile(args[4]+".last", nil, 0o600) }
	if err := s.play(all[i].talk); err != nil {
		text = err.Error()
	}
	// Whoever reads it finds all of it.
	if err := os.WriteFile(args[4]+".part", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(args[4]+".part", args[4])
}

// A speaker speaks one side of a conversation.
type speaker struct {
	ours   lineKind // what is sent
	in     chan string
	out    io.WriteCloser
	names  map[string]string // what stands for what
	http   net.Listener      // for $url
	called chan struct{}     // closed when something has connected to it
	last   func() error      // called ahead of what makes the peer go; may be nil
	said   strings.Builder
}

func newSpeaker(ours lineKind, dir string, in io.Reader, out io.WriteCloser) *speaker {
	s := &speaker{ours: ours, in: make(chan string, 1<<16), out: out, names: map[string]string{"dir": dir, "mark": "\ufeff"}}
	go func() {
		defer close(s.in)
		r := bufio.NewReaderSize(in, 1<<16)
		for {
			l, err := r.ReadString('\n')
			if l = strings.TrimSpace(l); l != "" {
				s.in <- l
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *speaker) play(talk []line) error {
	defer func() {
		if s.http != nil {
			_ = s.http.Close()
		}
	}()
	var pending bytes.Buffer
	skip := false
	for i, l := range talk {
		var err error
		switch {
		case l.kind == s.ours:
			if err = s.put(&pending, l.text); err != nil {
				break
			}
			// What follows at once goes in one write.
			if i+1 < len(talk) && talk[i+1].kind == s.ours {
				continue
			}
			goes := i+1 < len(talk) && talk[i+1].text == peerGone
			if goes && s.last != nil {
				if err = s.last(); err != nil {
					break
				}
			}
			if _, err = s.out.Write(pending.Bytes()); goes {
				err = nil // it may be gone before it has all
			}
			pending.Reset()
		case l.kind == note && strings.HasPrefix(l.text, "any"):
			skip = true
			continue
		case l.kind == note:
			err = s.note(l.text)
		default:
			err = s.expect(l.text, skip)
			skip = false
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, &s.said)
		}
	}
	return nil
}

var (
	times  = regexp.MustCompile(`^(\d+) times `)
	filler = regexp.MustCompile(`x×(\d+)`)
	named  = regexp.MustCompile(`\$[a-z]+`)
)

func (s *speaker) put(b *bytes.Buffer, text string) error {
	n := 1
	if m := times.FindStringSubmatch(text); m != nil {
		n, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	if strings.Contains(text, "$url") && s.http == nil {
		if err := s.listen(); err != nil {
			return err
		}
	}
	fmt.Fprintf(&s.said, "%s %s\n", s.ours, text)
	text = named.ReplaceAllStringFunc(text, func(name string) string {
		if v, ok := s.names[name[1:]]; ok {
			return v
		}
		return name
	})
	text = filler.ReplaceAllStringFunc(text, func(x string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(x, "x×"))
		return strings.Repeat("x", n)
	})
	for range n {
		b.WriteString(text + "\n")
	}
	return nil
}

// expect waits for a line: … stands for anything, and a name with a dollar for
// what it stood for before.
func (s *speaker) expect(want string, skip bool) error {
	var pattern strings.Builder
	var fresh []string
	rest := want
	for rest != "" {
		loc := regexp.MustCompile(`…|\$[a-z]+`).FindStringIndex(rest)
		if loc == nil {
			break
		}
		pattern.WriteString(regexp.QuoteMeta(rest[:loc[0]]))
		word := rest[loc[0]:loc[1]]
		rest = rest[loc[1]:]
		v, known := s.names[strings.TrimPrefix(word, "$")]
		switch {
		case word == "…":
			pattern.WriteString(`.*`)
		case known:
			pattern.WriteString(regexp.QuoteMeta(v))
		default:
			pattern.WriteString(`([^"]*)`)
			fresh = append(fresh, word[1:])
		}
	}
	re := regexp.MustCompile(`^` + pattern.String() + regexp.QuoteMeta(rest) + `$`)
	timer := time.NewTimer(rawLimit)
	defer timer.Stop()
	for {
		select {
		case l, ok := <-s.in:
			if !ok {
				return fmt.Errorf("the peer is gone where this was due: %s", want)
			}
			fmt.Fprintf(&s.said, "%.500s\n", l)
			m := re.FindStringSubmatch(l)
			if m == nil && skip {
				continue
			}
			if m == nil {
				return fmt.Errorf("something else came than %s", want)
			}
			for i, name := range fresh {
				s.names[name] = m[i+1]
			}
			return nil
		case <-timer.C:
			return fmt.Errorf("this did not come: %s", want)
		}
	}
}

// What else may be in a conversation.
const (
	silence  = "nothing comes"
	peerGone = "the peer is gone"
	notMade  = "there is no file $dir/"
	noCall   = "nobody has connected to $url"
)

func (s *speaker) note(text string) error {
	switch name, file := strings.CutPrefix(text, notMade); {
	case file:
		if _, err := os.Stat(filepath.Join(s.names["dir"], name)); err == nil {
			return errors.New("there is a file " + name)
		}
	case text == noCall:
		select {
		case <-s.called:
			return errors.New("something has connected")
		default:
		}
	case text == silence:
		select {
		case l, ok := <-s.in:
			if !ok {
				return errors.New("the peer is gone")
			}
			return fmt.Errorf("this came: %.500s", l)
		case <-time.After(rawSilence):
		}
	case text == peerGone:
		limit := time.After(rawLimit)
		for {
			select {
			case _, ok := <-s.in:
				if !ok {
					return nil
				}
			case <-limit:
				return errors.New("the peer is still there")
			}
		}
	default:
		return fmt.Errorf("nobody knows what this is: %s", text)
	}
	return nil
}

func (s *speaker) listen() (err error) {
	if s.http, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	s.called, s.names["url"] = make(chan struct{}), "http://"+s.http.Addr().String()
	go func() {
		if c, err := s.http.Accept(); err == nil {
			close(s.called)
			_ = c.Close()
		}
	}()
	return nil
}

// Every failure of somebody else's peer has a conversation that shows it, but for
// what it fails sometimes and no rule of level must or should is about.
func TestFindingsAreShown(t *testing.T) {
	levels := map[string]conformance.Level{}
	for _, r := range conformance.Rules() {
		levels[r.ID] = r.Level
	}
	for _, p := range checkedPeers() {
		for _, f := range mustFind(t, p.name) {
			if p.ours || len(f.talk) > 0 {
				continue
			}
			for i, r := range f.rules {
				if l := levels[r]; l == "must" || l == "should" || !f.maybe[i] {
					t.Errorf("%s: nothing shows %s, which is a %s", f.at, r, l)
				}
			}
		}
	}
}
