package proxies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/withheld"
	"github.com/goacp/acp/internal/plaintext"
	"github.com/goacp/acp/internal/process"
)

// Bounds of the proxy context.
const (
	defaultContext = 64 << 10 // bytes that are added to a prompt
	mostContext    = 4 << 20
	commandTime    = 10 * time.Second
)

// contextKind is the proxy that adds files and the output of commands to prompts.
func contextKind() Kind {
	return Kind{
		Name:  "context",
		Short: "Add files or the output of commands to prompts",
		Long: `Add the text of files and the output of commands to the first prompt of each session, or to
every prompt, and say so in the conversation. Names of files are relative to the directory
of the session, and must not lead out of it; an absolute name may be anywhere. Commands run
in that directory for at most 10 seconds, without the keys of acp and of language models. What is not text, such as
a picture, is left out, and what is too long is cut; the conversation says that, too.`,
		Example: "context --file NOTES.md --command 'git status --short'",
		Flags: func(f *pflag.FlagSet) func(Env) (func() (*Running, error), error) {
			files := f.StringArray("file", nil, "add the text of `FILE` (repeatable)")
			commands := f.StringArray("command", nil, "add the output of `COMMAND`, which a shell runs (repeatable)")
			every := f.Bool("every", false, "add it to every prompt instead of the first of a session")
			most := f.Int("max-bytes", defaultContext, "add at most `N` bytes to a prompt")
			return func(env Env) (func() (*Running, error), error) {
				switch {
				case len(*files)+len(*commands) == 0:
					return nil, errors.New("it needs --file or --command")
				case *most < 1 || *most > mostContext:
					return nil, fmt.Errorf("--max-bytes is from 1 to %d", mostContext)
				}
				for _, name := range *files {
					if name == "" {
						return nil, errors.New("--file is empty")
					}
				}
				return func() (*Running, error) {
					a := &adding{
						dir: env.Dir, environ: env.Environ, files: *files, commands: *commands, every: *every, most: *most,
						done: map[acp.SessionID]bool{},
					}
					// With a Session hook the proxy learns of the directories of sessions.
					opened := func(ctx context.Context, _ *acp.ProxySession, next func(context.Context) error) error {
						return next(ctx)
					}
					return &Running{Proxy: &acp.Proxy{Name: "context", Prompt: a.prompt, Session: opened}}, nil
				}, nil
			}
		},
	}
}

// An adding is the proxy for one client.
type adding struct {
	dir             string // of sessions whose own is not known
	environ         []string
	files, commands []string
	every           bool
	most            int

	mu   sync.Mutex
	done map[acp.SessionID]bool // sessions that have had it
}

// maxAdded is how many sessions are known to have had it. When there are more, all get it again.
const maxAdded = 4096

// first reports whether a session has not had it, and notes that it has.
func (a *adding) first(id acp.SessionID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done[id] && !a.every {
		return false
	}
	if len(a.done) >= maxAdded {
		clear(a.done)
	}
	a.done[id] = true
	return true
}

func (a *adding) prompt(ctx context.Context, p *acp.ProxyPrompt, next func(context.Context) error) error {
	if !a.first(p.Session.ID()) {
		return next(ctx)
	}
	dir := a.dir
	if o := p.Session.Opening(); o != nil && filepath.IsAbs(o.Cwd) {
		dir = o.Cwd
	}
	left := a.most
	var added, said []string
	add := func(what string, data []byte, cut bool, err error) {
		what = safetext.Line(what, 300)
		switch {
		case err != nil:
			said = append(said, what+" could not be added: "+safetext.Line(plainError(err), 300))
			return
		case left == 0:
			said = append(said, what+" was left out: there is no room for more")
			return
		}
		content := string(data)
		if cut {
			content = content[:len(content)-plaintext.Unfinished(content)]
		}
		if plaintext.IsBinary(content) {
			said = append(said, what+" was left out: it is not text")
			return
		}
		content = safetext.Text(content)
		if len(content) > left {
			content, cut = content[:left], true
			content = content[:left-plaintext.Unfinished(content)]
		}
		left -= len(content)
		note := fmt.Sprintf("%s, %d bytes", what, len(content))
		if cut {
			note += ", cut"
		}
		said = append(said, note)
		added = append(added, note+":\n"+prose.Code("", content))
	}
	for _, name := range a.files {
		if left == 0 {
			add(name, nil, false, nil)
			continue
		}
		data, err := fileIn(dir, name, left)
		add(name, data[:min(len(data), left)], len(data) > left, err)
	}
	for _, command := range a.commands {
		if left == 0 {
			add("$ "+command, nil, false, nil)
			continue
		}
		data, err := a.outputOf(ctx, dir, command, left)
		add("$ "+command, data[:min(len(data), left)], len(data) > left, err)
	}
	if len(added) > 0 {
		block := acp.Text("Added by the user's settings:\n\n" + strings.Join(added, "\n\n"))
		p.Blocks = append([]acp.ContentBlock{block}, p.Blocks...)
	}
	if err := p.Say(ctx, "[context] "+strings.Join(said, "; ")+"\n\n"); err != nil {
		return err
	}
	return next(ctx)
}

// plainError returns what the user needs to know of an error.
func plainError(err error) string {
	if bad, ok := errors.AsType[*os.PathError](err); ok {
		err = bad.Err
	}
	return err.Error()
}

// fileIn reads a file of a directory, and of a long one the first most+1 bytes. A relative name must not lead out of
// the directory, links included.
func fileIn(dir, name string, most int) ([]byte, error) {
	const how = os.O_RDONLY | nonblock
	if filepath.IsAbs(name) {
		return readRegular(name, most)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, how, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readFile(f, most)
}

// outputOf returns the output of a command, or of a long one the first most+1 bytes. Everything that the command has
// started ends with it.
func (a *adding) outputOf(ctx context.Context, dir, command string, most int) (data []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	c := process.Config{Path: "/bin/sh", Args: []string{"-c", command}, Dir: dir, Env: a.environ}
	if c.Env == nil {
		c.Env = withheld.Of(os.Environ(), nil, nil).Environ()
	}
	if runtime.GOOS == "windows" {
		c.Path, c.Args = "cmd", []string{"/c", command}
	}
	p, err := process.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	_ = p.Stdin().Close()
	data, err = io.ReadAll(io.LimitReader(p.Stdout(), int64(most)+1))
	if len(data) > most {
		p.Kill()
	} else {
		<-p.Done()
	}
	_ = p.Stop(context.WithoutCancel(ctx))
	switch exit := (*process.ExitError)(nil); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it did not end in %v", commandTime)
	case err != nil:
		return nil, err
	case len(data) <= most && errors.As(p.Wait(), &exit) && len(data) == 0:
		return nil, exit
	}
	return data, nil
}
