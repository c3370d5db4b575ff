package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
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
		Long: `Write all sessions of acp serve, as they are at one moment, to FILE, and verify it. The
server may run and write meanwhile. FILE must not exist. It has no devices and settings:
to keep them, copy the directories of settings and of state.

Sessions in PostgreSQL are backed up with its own tools: see docs/operate.md.`,
		RunE: func(cmd *cobra.Command, args []string) error { return k.backup(cmd.Context(), k.file(args[0])) },
	}
	restore := &cobra.Command{
		Use: "restore FILE", Short: "Replace all kept sessions with those of a backup", Args: cobra.ExactArgs(1),
		Long: `Replace all sessions of acp serve with those in FILE, which acp serve backup has written.
The server must not run. FILE is verified first. If a session in it is damaged, or if no
server has kept sessions here before, nothing is restored, unless --force is given. The
sessions that were there are kept in a directory, whose name is printed.`,
		RunE: func(cmd *cobra.Command, args []string) error { return k.restore(cmd.Context(), k.file(args[0])) },
	}
	restore.Flags().BoolVar(&k.force, "force", false, "restore even if sessions in FILE are damaged, or no server has kept sessions here")
	verify := &cobra.Command{
		Use: "verify [FILE]", Short: "Check that all kept sessions are whole", Args: cobra.MaximumNArgs(1),
		Long: `Read every session of acp serve, or of the backup FILE, and check that each record is as it
was written and that none is missing. Sessions that are damaged are listed, and the status
is 1. The server may run meanwhile. A session that was marked as damaged and is whole, as
after a repair of the database, is not marked any more.`,
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
		if err := k.kept(dir); err != nil {
			return nil, err
		}
	}
	return k.cluster.open(ctx, dir, func(string, error) {})
}

// kept returns an error if no server has kept sessions in a directory.
func (k *keeping) kept(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "log.db")); errors.Is(err, os.ErrNotExist) {
		return exitcode.Errorf(exitcode.Failed, "nothing is kept in %s%s", dir, k.app.Elsewhere())
	}
	return nil
}

func (k *keeping) backup(ctx context.Context, file string) error {
	dir, err := k.dir()
	if err != nil {
		return err
	}
	if err := k.kept(dir); err != nil {
		return err
	}
	if err := sqlite.Backup(ctx, dir, file); err != nil {
		return err
	}
	n, damaged, err := k.check(ctx, file)
	if err != nil {
		return fmt.Errorf("%s was written, and cannot be verified: %w", file, err)
	}
	fmt.Fprintf(k.app.Out, "%d sessions are in %s\n", n, file)
	return bad(n, damaged)
}

// isDatabase reports whether a file begins like one of SQLite.
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
func (k *keeping) check(ctx context.Context, file string) (n, damaged int, err error) {
	if ok, err := isDatabase(file); err != nil {
		return 0, 0, err
	} else if !ok {
		return 0, 0, exitcode.Errorf(exitcode.Failed, "%s is not a backup of acp serve", file)
	}
	log, err := sqlite.OpenFile(ctx, file, engine.Options{})
	if err != nil {
		return 0, 0, err
	}
	n, damaged, err = k.report(ctx, log)
	return n, damaged, errors.Join(err, log.Close())
}

// report verifies all sessions, and prints those that are damaged.
func (k *keeping) report(ctx context.Context, log *engine.Engine) (n, damaged int, err error) {
	err = log.VerifyAll(ctx, func(s engine.Session, damage *engine.DamageError) error {
		n++
		if damage == nil {
			return nil
		}
		damaged++
		_, err := fmt.Fprintf(k.app.Out, "%s  %s  whole up to record %d of %d\n", safetext.Line(s.ID, maxName), safetext.Line(damage.Error(), maxLine), damage.Seq-min(damage.Seq, 1), s.Head.Seq)
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

// isUsed reports whether a server has kept sessions in a directory, or has been about to.
func isUsed(dir string) bool {
	for _, name := range []string{"log.db", "node"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

func (k *keeping) restore(ctx context.Context, file string) (err error) {
	dir, err := k.dir()
	if err != nil {
		return err
	}
	if !k.force && !isUsed(dir) {
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
	n, damaged, err := k.check(ctx, file)
	if err != nil {
		return err
	}
	if err := bad(n, damaged); err != nil && !k.force {
		return fmt.Errorf("nothing was restored: %w; to restore what is whole, write --force", err)
	}
	kept, err := sqlite.Restore(ctx, file, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(k.app.Out, "%d sessions were restored\n", n)
	if kept != "" {
		fmt.Fprintf(k.app.Out, "what was there is in %s\n", kept)
	}
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
			n, damaged, err = k.report(ctx, log)
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
