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
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
	"github.com/goacp/acp/internal/sleep"
	"github.com/goacp/acp/transcript"
)

// snapshot reads a conversation and reports damage to it on standard error. A turn without an end
// is marked as interrupted if no program is writing the conversation any more.
func (o *Options) snapshot(ctx context.Context, st *store.Store, s store.Session) (*transcript.Snapshot, error) {
	// Whether a program is writing is asked before and after reading: a turn that seems unfinished
	// because the snapshot was taken too early must not be reported as interrupted.
	busy, unknown := st.Writing(ctx, s.Conversation)
	t, damage, err := st.Snapshot(ctx, s.Conversation, store.Bounds())
	if err != nil {
		return nil, err
	}
	if damage != nil {
		fmt.Fprintf(o.App.Err, "acp: conversation %s: %s\n", s.Conversation, damage.Summary())
	}
	if !busy && unknown == nil && (s.State == records.StateRunning || history.InTurn(t)) {
		if busy, unknown = st.Writing(ctx, s.Conversation); !busy && unknown == nil {
			t = store.Interrupted(t)
		}
	}
	return t, nil
}

// show prints a conversation.
func (o *Options) show(ctx context.Context, st *store.Store, s store.Session) error {
	t, err := o.snapshot(ctx, st, s)
	if err != nil {
		return err
	}
	return o.write(s, t)
}

// write prints a conversation in the form that the flags say.
func (o *Options) write(s store.Session, t *transcript.Snapshot) error {
	format := export.Text
	switch {
	case o.JSON:
		format = export.JSON
	case o.Markdown:
		format = export.Markdown
	}
	return export.Write(o.App.Out, format, s, t)
}

// export writes a conversation to a file or to standard output. An existing file is overwritten
// with --force only.
func (o *Options) export(ctx context.Context, st *store.Store, s store.Session) error {
	t, err := o.snapshot(ctx, st, s)
	if err != nil {
		return err
	}
	return o.exportTo(s, t)
}

// exportTo writes a conversation to the file, or to standard output.
func (o *Options) exportTo(s store.Session, t *transcript.Snapshot) error {
	if o.File == "" || o.File == "-" {
		return export.Write(o.App.Out, o.Format, s, t)
	}
	name := o.File
	if !filepath.IsAbs(name) && o.App.Cwd != "" {
		name = filepath.Join(o.App.Cwd, name)
	}
	return o.written(writeFile(name, o.Force, func(w io.Writer) error { return export.Write(w, o.Format, s, t) }))
}

// writeFile writes a file that only its owner can read. The file appears complete or not at all,
// because it is written under a temporary name first. An unusable name is an error of usage.
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
	// Unlike Rename, Link fails if the name has come into existence since. Not all file systems
	// have links, so Rename is the fallback.
	if err := os.Link(f.Name(), name); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(f.Name(), name)
}

// delete deletes sessions, and asks for confirmation first unless --yes is given.
func (o *Options) delete(ctx context.Context) error {
	st, err := o.store(ctx)
	if err != nil {
		return err
	}
	// All sessions are looked up before the first is deleted, so that a wrong id deletes nothing.
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
		said := o.said(ctx, st, s)
		ended, err := o.deleteOwn(ctx, s)
		if err != nil {
			return fmt.Errorf("%s was not deleted: %w", name(s), err)
		}
		switch {
		case o.AgentToo:
			err = o.deleteRemote(ctx, agents, s)
		case s.Agent == roster.Builtin && !o.Local: // it is this program's, too, and need not be started
			err = o.deleteBuiltIn(ctx, s, ended)
		}
		switch {
		case err != nil && ended:
			return fmt.Errorf("%s was deleted, but not the agent's own copy: %w", name(s), err)
		case err != nil:
			return fmt.Errorf("%s was not deleted: %w; to delete only the stored conversation, use --local", name(s), err)
		}
		if err := st.Delete(ctx, s.Conversation); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := o.forget(s, said); err != nil {
			return fmt.Errorf("%s was deleted, but not from the history of what you typed: %w", name(s), err)
		}
		fmt.Fprintf(o.App.Err, "deleted %s\n", name(s))
	}
	return nil
}

// deleteOwn has the user's own gateway delete a conversation that it has open, and end its agent. It fails if another
// program has the conversation open.
func (o *Options) deleteOwn(ctx context.Context, s store.Session) (there bool, err error) {
	there, by, err := o.App.InOwn(ctx, s.Conversation)
	switch {
	case err != nil:
		return false, err
	case !there && by != "":
		return false, fmt.Errorf("it is open in %s: close it there first", safetext.Line(by, 200))
	case !there:
		return false, nil
	}
	h, _, err := at.Open(ctx, o.App, app.Own)
	if err != nil {
		return false, err
	}
	defer h.Close()
	return true, at.Refusal(h.Conn().Delete(ctx, acp.SessionID(s.Conversation)))
}

// ending is how long an agent that a gateway has ended may take until its own copy can be deleted.
const ending = 10 * time.Second

// deleteBuiltIn deletes the built-in agent's copy. If a gateway has just ended the agent, the copy may be open for a
// moment.
func (o *Options) deleteBuiltIn(ctx context.Context, s store.Session, ends bool) error {
	bound, cancel := context.WithTimeout(ctx, ending)
	defer cancel()
	for {
		err := o.App.DeleteBuiltIn(acp.SessionID(s.ID))
		if err == nil || !ends || !sleep.For(bound, 100*time.Millisecond) {
			return err
		}
	}
}

// said returns the prompts of a conversation; none if it cannot be read.
func (o *Options) said(ctx context.Context, st *store.Store, s store.Session) []string {
	if o.Forget == nil {
		return nil
	}
	t, _, err := st.Snapshot(ctx, s.Conversation, store.Bounds())
	if err != nil {
		return nil
	}
	var said []string
	for e := range t.Entries() {
		switch e := e.(type) {
		case *transcript.Message:
			if e.Role == transcript.RoleUser {
				said = append(said, e.Text())
			}
		case *transcript.Notice:
			if history.IsUntaken(e) {
				said = append(said, e.Description)
			}
		}
	}
	return said
}

// forget removes the prompts of a conversation from the history of what the user typed in its directory.
func (o *Options) forget(s store.Session, said []string) error {
	if o.Forget == nil || len(said) == 0 {
		return nil
	}
	return o.Forget(s.Cwd, said)
}

// deleteRemote has the agent delete a session. It starts each agent once. An agent that cannot
// delete sessions is reported on standard error and is not a failure.
func (o *Options) deleteRemote(ctx context.Context, agents map[string]Remote, s store.Session) error {
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
		fmt.Fprintf(o.App.Err, "acp: %s cannot delete sessions; its own copy of %s remains\n", safetext.Line(s.Agent, 100), name(s))
		return nil
	}
	return err
}

// name describes a session to the user.
func name(s store.Session) string {
	text := safetext.Line(s.ID, 100) + " of " + safetext.Line(s.Agent, 100)
	if s.Title != "" {
		text += fmt.Sprintf(" (%s)", safetext.Line(s.Title, 60))
	}
	return text
}

// confirm asks the user whether to delete the sessions. It fails without a terminal.
func (o *Options) confirm(ctx context.Context, found []store.Session) error {
	if !o.App.InTerminal || !o.App.ErrTerminal {
		return exitcode.Errorf(exitcode.Usage, "deleting needs confirmation, but there is no terminal: use --yes")
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
	go func() { // a blocked read cannot be cancelled; the process is about to exit in that case
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
