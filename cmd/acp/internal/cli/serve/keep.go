package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// A keeping is one of the commands about what a server has kept.
type keeping struct {
	app     *app.App
	cluster Cluster
	force   bool
}

// newKeeping returns the commands about what a server has kept: they work without it.
func newKeeping(a *app.App) []*cobra.Command {
	k := &keeping{app: a}
	backup := &cobra.Command{
		Use: "backup FILE", Short: "Write all kept sessions to a file", Args: cobra.ExactArgs(1),
		Long: `Write all sessions of acp serve, and the conversations that are kept beside them, to FILE,
a tar archive, and verify it. Servers and chats may run and write meanwhile: each session is
as it is at one moment, which is not the same for all.
FILE must not exist. It has no devices and settings: to keep them, copy the directories of
settings and of state.

Sessions in PostgreSQL are backed up with its own tools: see docs/operate.md.`,
		RunE: func(cmd *cobra.Command, args []string) error { return k.backup(cmd.Context(), k.file(args[0])) },
	}
	restore := &cobra.Command{
		Use: "restore FILE", Short: "Replace all kept sessions with those of a backup", Args: cobra.ExactArgs(1),
		Long: `Replace all sessions of acp serve with those in FILE, which acp serve backup has written.
Conversations of chats are replaced if FILE has them; others stay. The server must not run,
and no chat may have one open that is replaced. FILE is verified first. If a session in it
is damaged, or if no server has kept sessions here before, nothing is restored, unless
--force is given. The sessions that were there are kept in a directory, whose name is printed.`,
		RunE: func(cmd *cobra.Command, args []string) error { return k.restore(cmd.Context(), k.file(args[0])) },
	}
	restore.Flags().BoolVar(&k.force, "force", false, "restore even if sessions in FILE are damaged, or no server has kept sessions here")
	verify := &cobra.Command{
		Use: "verify [FILE]", Short: "Check that all kept sessions are whole", Args: cobra.MaximumNArgs(1),
		Long: `Read every session of acp serve, and the conversations beside them, or those in the backup
FILE, and check that each record is as it was written and that none is missing. Sessions
that are damaged are listed, with what they have lost, and the status is 1. The rest of them
can be read, and continued. The server may run meanwhile.`,
		RunE: func(cmd *cobra.Command, args []string) error { return k.verify(cmd.Context(), args) },
	}
	export := &cobra.Command{
		Use: "export SESSION FILE", Short: "Write a kept session as a recording", Args: cobra.ExactArgs(2),
		Long: `Write a session of acp serve to FILE as a recording, for acp trace. The recording is what a
client of version 2 would have seen that had always been there. SESSION is an ID, which may
be abbreviated, - for the latest session of this directory, or @N for row N of
acp sessions list --at own. FILE must not exist; "-" is standard output. The server may run
meanwhile.`,
		Example: `  acp serve export @1 session.acptrace
  acp trace show session.acptrace`,
		RunE: func(cmd *cobra.Command, args []string) error { return k.export(cmd.Context(), args[0], args[1]) },
	}
	for _, cmd := range []*cobra.Command{verify, export} {
		cmd.Flags().StringVar(&k.cluster.Database, "db", "", "the sessions are in the PostgreSQL database at `URL` (default: $ACP_DB, or files)")
	}
	return []*cobra.Command{backup, restore, verify, export}
}

// file returns the path of a file that an argument names.
func (k *keeping) file(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(k.app.Cwd, name)
}

// dir returns the directory with what a server keeps.
func (k *keeping) dir() (string, error) {
	cfg, err := k.app.Config()
	if err != nil {
		return "", err
	}
	if cfg.Dirs.State == "" {
		return "", exitcode.Errorf(exitcode.Failed, "there is no home directory, so nothing is kept")
	}
	return filepath.Join(cfg.Dirs.State, "gateway"), nil
}

// open opens what a server keeps.
func (k *keeping) open(ctx context.Context) (*engine.Engine, error) {
	if err := k.cluster.check(); err != nil {
		return nil, err
	}
	dir, err := k.dir()
	if err != nil {
		return nil, err
	}
	if k.cluster.Database == "" {
		o, err := k.kept(dir)
		if err != nil {
			return nil, err
		}
		return sqlite.Look(ctx, dir, o)
	}
	return k.cluster.open(ctx, k.app, dir, func(string, error) {})
}

// kept returns how sessions are kept, and an error if none are: dir is the directory of a server.
func (k *keeping) kept(dir string) (engine.Options, error) {
	o, err := files(k.app)
	if err != nil {
		return o, err
	}
	if has(dir, logName) || o.Journals != "" && has(dir, journalsName) { // or not all of it was taken over
		return o, exitcode.Errorf(exitcode.Failed, "an earlier version has kept the sessions in %s: acp serve takes them over when it starts", dir)
	}
	if o.Journals == "" {
		o.Journals = filepath.Join(dir, journalsName)
	}
	if all, _ := filepath.Glob(filepath.Join(o.Journals, "*.jsonl")); len(all) == 0 && !has(dir, indexName) {
		return o, exitcode.Errorf(exitcode.Failed, "nothing is kept in %s%s", o.Journals, k.app.Elsewhere())
	}
	return o, nil
}

const (
	// logName is the file in which earlier versions kept all sessions.
	logName = "log.db"
	// journalsName is the directory of journals in that of a server, where conversations are not kept.
	journalsName = "sessions"
	indexName    = "index.db"
)

// has reports whether a directory has one of some files.
func has(dir string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

func (k *keeping) backup(ctx context.Context, file string) error {
	dir, err := k.dir()
	if err != nil {
		return err
	}
	o, err := k.kept(dir)
	if err != nil {
		return err
	}
	if err := sqlite.Backup(ctx, o.Journals, file); err != nil {
		return err
	}
	n, damaged, err := k.check(ctx, file)
	if err != nil {
		return fmt.Errorf("%s was written, and cannot be verified: %w", file, err)
	}
	fmt.Fprintf(k.app.Out, "%d sessions are in %s\n", n, file)
	return bad(n, damaged)
}

// openBackup opens a backup.
func openBackup(ctx context.Context, name string) (*file.Archive, error) {
	old, err := isDatabase(name)
	if err != nil {
		return nil, err
	}
	if old {
		return nil, exitcode.Errorf(exitcode.Failed, "%s is a backup of an earlier version of acp, which can only be restored", name)
	}
	a, err := file.OpenArchive(ctx, name)
	if errors.Is(err, file.ErrNoBackup) {
		err = exitcode.Errorf(exitcode.Failed, "%s is not a backup of acp serve", name)
	}
	return a, err
}

// isDatabase reports whether a file begins like one of SQLite, as backups of earlier versions do.
func isDatabase(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(f, head); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return string(head) == magic, nil
}

// magic is the beginning of a database.
const magic = "SQLite format 3\x00"

// check verifies a backup.
func (k *keeping) check(ctx context.Context, name string) (n, damaged int, err error) {
	a, err := openBackup(ctx, name)
	if err != nil {
		return 0, 0, err
	}
	n, damaged, err = k.report(ctx, a.Journals().Verify)
	return n, damaged, errors.Join(err, a.Close())
}

// report verifies all sessions, and prints what those have lost that are damaged.
func (k *keeping) report(
	ctx context.Context, verify func(context.Context, func(session string, err error) error) error,
) (n, damaged int, err error) {
	err = verify(ctx, func(session string, err error) error {
		n++
		if err == nil {
			return nil
		}
		why := err.Error()
		if damage := (*engine.DamageError)(nil); errors.As(err, &damage) {
			why = damage.Summary()
		} else if !errors.As(err, new(*journal.FormatError)) && !errors.As(err, new(*fs.PathError)) {
			return err
		}
		damaged++
		_, err = fmt.Fprintf(k.app.Out, "%s  %s\n", safetext.Line(session, maxName), safetext.Line(why, maxLine))
		return err
	})
	return n, damaged, err
}

// bad is the error for sessions that are damaged.
func bad(n, damaged int) error {
	if damaged == 0 {
		return nil
	}
	return exitcode.Errorf(exitcode.Failed, "%d of %d sessions are damaged", damaged, n)
}

func (k *keeping) restore(ctx context.Context, file string) (err error) {
	dir, err := k.dir()
	if err != nil {
		return err
	}
	o, err := files(k.app)
	if err != nil {
		return err
	}
	if !k.force && !has(dir, journalsName, indexName, logName, "node") {
		return exitcode.Errorf(exitcode.Failed, "no acp serve has kept sessions in %s, so nothing was restored%s; to restore them there, write --force", dir, k.app.Elsewhere())
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	d := new(durable)
	defer func() {
		if d.lock != nil {
			err = errors.Join(err, d.lock.Close())
		}
	}()
	if err := d.claim(ctx, new(Own), dir); err != nil {
		return err
	}
	if old, err := isDatabase(file); old || err != nil {
		return k.restoreOld(ctx, file, dir, o.Journals, err)
	}
	backup, err := openBackup(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backup.Close()) }()
	n, damaged, err := k.report(ctx, backup.Journals().Verify)
	if err != nil {
		return err
	}
	if err := bad(n, damaged); err != nil && !k.force {
		return fmt.Errorf("nothing was restored: %w; to restore what is whole, write --force", err)
	}
	kept, err := sqlite.Restore(ctx, backup, dir, o.Journals)
	if err != nil {
		return err
	}
	fmt.Fprintf(k.app.Out, "%d sessions were restored\n", n)
	k.moved(kept)
	return nil
}

// moved says where is what was there.
func (k *keeping) moved(kept string) {
	if kept != "" {
		fmt.Fprintf(k.app.Out, "what was there is in %s\n", kept)
	}
}

// restoreOld restores a backup of an earlier version, unless there is an error.
func (k *keeping) restoreOld(ctx context.Context, file, dir, elsewhere string, err error) error {
	if err != nil {
		return err
	}
	kept, err := sqlite.RestoreLog(ctx, file, dir, elsewhere, k.force)
	if errors.Is(err, engine.ErrCorrupt) {
		return fmt.Errorf("nothing was restored: %w; to restore what can be read, write --force", err)
	}
	if err != nil {
		return fmt.Errorf("nothing was restored: %w", err)
	}
	fmt.Fprintf(k.app.Out, "the sessions of an earlier version were restored: acp serve takes them over when it starts\n")
	k.moved(kept)
	return nil
}

func (k *keeping) verify(ctx context.Context, args []string) error {
	var n, damaged int
	var err error
	if len(args) > 0 {
		n, damaged, err = k.check(ctx, k.file(args[0]))
	} else {
		var log *engine.Engine
		if log, err = k.open(ctx); err == nil {
			n, damaged, err = k.report(ctx, log.VerifyAll)
			err = errors.Join(err, log.Close())
		}
	}
	if err != nil {
		return err
	}
	if err := bad(n, damaged); err != nil {
		return err
	}
	_, err = fmt.Fprintf(k.app.Out, "%d sessions are whole\n", n)
	return err
}

func (k *keeping) export(ctx context.Context, id, name string) (err error) {
	log, err := k.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if id, err = at.FindKept(ctx, log, id, k.app.Cwd); err != nil {
		return err
	}
	out := io.Writer(k.app.Out)
	if name != "-" {
		f, err := os.OpenFile(k.file(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() {
			if e := f.Close(); err == nil {
				err = e
			}
		}()
		out = f
	}
	w := bufio.NewWriter(out)
	err = gateway.Export(ctx, log, id, "acp "+k.app.Version, w)
	return errors.Join(err, w.Flush())
}
