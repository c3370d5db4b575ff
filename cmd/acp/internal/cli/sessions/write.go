package sessions

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
	"github.com/goacp/acp/transcript"
)

// snapshot reads a conversation, and says what of it is damaged. A turn that has no end is interrupted if
// no program writes the conversation any more.
func (o *Options) snapshot(ctx context.Context, st *store.Store, s store.Session) (*transcript.Snapshot, error) {
	// One that is being written when it is read may have ended its turn since.
	busy, unknown := st.Writing(ctx, s.Conversation)
	t, damage, err := st.Snapshot(ctx, s.Conversation, store.Bounds())
	if err != nil {
		return nil, err
	}
	if damage != nil {
		fmt.Fprintf(o.App.Err, "acp: conversation %s: %s\n", s.Conversation, damage)
	}
	if !busy && unknown == nil && history.InTurn(t) {
		if busy, unknown = st.Writing(ctx, s.Conversation); !busy && unknown == nil {
			t = store.Interrupted(t)
		}
	}
	return t, nil
}

func (o *Options) show(ctx context.Context, st *store.Store, s store.Session) error {
	t, err := o.snapshot(ctx, st, s)
	if err != nil {
		return err
	}
	format := export.Text
	switch {
	case o.JSON:
		format = export.JSON
	case o.Markdown:
		format = export.Markdown
	}
	return export.Write(o.App.Out, format, s, t)
}

func (o *Options) export(ctx context.Context, st *store.Store, s store.Session) error {
	t, err := o.snapshot(ctx, st, s)
	if err != nil {
		return err
	}
	if o.File == "" || o.File == "-" {
		return export.Write(o.App.Out, o.Format, s, t)
	}
	name := o.File
	if !filepath.IsAbs(name) && o.App.Cwd != "" {
		name = filepath.Join(o.App.Cwd, name)
	}
	if err := writeFile(name, o.Force, func(w io.Writer) error { return export.Write(w, o.Format, s, t) }); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return exitcode.Errorf(exitcode.Usage, "%s is there already; --force writes over it", safetext.Line(o.File, 500))
		}
		return fmt.Errorf("export the session: %w", err)
	}
	_, err = fmt.Fprintf(o.App.Err, "written to %s\n", safetext.Line(o.File, 500))
	return err
}

// writeFile makes a file that only its owner can read. It is never there in part. That there can be
// none of that name is an error of whoever named it.
func writeFile(name string, over bool, write func(io.Writer) error) error {
	if !over {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fs.ErrExist)
		}
	} else if info, err := os.Stat(name); err == nil && info.IsDir() {
		return exitcode.Errorf(exitcode.Usage, "%s is a directory", safetext.Line(name, 500))
	}
	f, err := app.CreateBeside(name, ".acp-export-*")
	if _, bad := errors.AsType[*fs.PathError](err); bad {
		return exitcode.With(exitcode.Usage, err)
	} else if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	b := bufio.NewWriter(f)
	if err := errors.Join(write(b), b.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	if over {
		return os.Rename(f.Name(), name)
	}
	// A link fails where somebody else was faster; not all file systems have links.
	if err := os.Link(f.Name(), name); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(f.Name(), name)
}

func (o *Options) delete(ctx context.Context) error {
	st, err := o.store(ctx)
	if err != nil {
		return err
	}
	// All are found before the first is deleted.
	var found []store.Session
	for _, id := range o.IDs {
		s, err := o.find(ctx, st, id)
		if err != nil {
			return err
		}
		found = append(found, s)
	}
	if !o.Yes {
		if err := o.confirm(ctx, found); err != nil {
			return err
		}
	}
	agents := map[string]Remote{}
	defer func() {
		for _, r := range agents {
			r.Close()
		}
	}()
	for _, s := range found {
		if o.AgentToo {
			if err := o.deleteThere(ctx, agents, s); err != nil {
				return fmt.Errorf("%s was not deleted: %w; --local deletes what was kept here", name(s), err)
			}
		}
		if err := st.Delete(ctx, s.Conversation); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		fmt.Fprintf(o.App.Err, "deleted %s\n", name(s))
	}
	return nil
}

// deleteThere has the agent delete a session. One that cannot is told of; one that does not know the
// session has done it.
func (o *Options) deleteThere(ctx context.Context, agents map[string]Remote, s store.Session) error {
	if o.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Wait)
		defer cancel()
	}
	r := agents[s.Agent]
	if r == nil {
		var err error
		if r, err = o.connect(ctx, s.Agent); err != nil {
			return err
		}
		agents[s.Agent] = r
	}
	err := r.Delete(ctx, acp.SessionID(s.ID))
	if errors.Is(err, errors.ErrUnsupported) {
		fmt.Fprintf(o.App.Err, "acp: %s cannot delete sessions; what it keeps of %s stays\n", safetext.Line(s.Agent, 100), name(s))
		return nil
	}
	return err
}

// name names a session for people.
func name(s store.Session) string {
	text := safetext.Line(s.ID, 100) + " of " + safetext.Line(s.Agent, 100)
	if s.Title != "" {
		text += fmt.Sprintf(" (%s)", safetext.Line(s.Title, 60))
	}
	return text
}

// confirm asks the user, who must be at a terminal.
func (o *Options) confirm(ctx context.Context, found []store.Session) error {
	if !o.App.InTerminal || !o.App.ErrTerminal {
		return exitcode.Errorf(exitcode.Usage, "nobody can be asked whether to delete without a terminal: say --yes")
	}
	for _, s := range found {
		fmt.Fprintf(o.App.Err, "  %s\n", name(s))
	}
	what := "this session"
	if len(found) > 1 {
		what = fmt.Sprintf("these %d sessions", len(found))
	}
	fmt.Fprintf(o.App.Err, "Delete %s? [y/N] ", what)
	answer := make(chan string, 1)
	go func() { // reading cannot be broken off; the process ends soon after
		line, _ := bufio.NewReader(o.App.In).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		}
		return exitcode.Errorf(exitcode.Cancelled, "nothing was deleted")
	case <-ctx.Done():
		return ctx.Err()
	}
}
