package check

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/trace"
)

// file returns the file a name means.
func (o *Options) file(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(o.App.Cwd, name)
}

// writable finds out, before anything is started, whether reports can be written where they are
// to be: it would be a pity to learn that at the end.
func (o *Options) writable() error {
	taken := map[string]string{}
	for _, f := range [][2]string{{"--junit", o.JUnit}, {"--sarif", o.SARIF}, {"--markdown", o.Markdown}, {"--output", o.Output}} {
		flag, name := f[0], f[1]
		if name == "" || name == "-" && flag != "--output" {
			continue
		}
		file := o.file(name)
		if other := taken[file]; other != "" {
			return exitcode.Errorf(exitcode.Usage, "%s and %s cannot both be written to %s", other, flag, name)
		}
		taken[file] = flag
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			return exitcode.Errorf(exitcode.Usage, "%s: %s is a directory", flag, name)
		}
		if info, err := os.Stat(filepath.Dir(file)); err != nil {
			return exitcode.Errorf(exitcode.Usage, "%s: %w", flag, err)
		} else if !info.IsDir() {
			return exitcode.Errorf(exitcode.Usage, "%s: %s is not a directory", flag, filepath.Dir(name))
		}
		if flag == "--output" {
			continue // it is opened before anything is started
		}
		if err := tryWriting(file); err != nil {
			return exitcode.Errorf(exitcode.Usage, "%s: %w", flag, err)
		}
	}
	return nil
}

// tryWriting finds out whether save will be able to write a file, and leaves it as it is.
func tryWriting(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		f, err := app.CreateBeside(file, ".acp-check-*")
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	case !info.Mode().IsRegular():
		return nil // opening a pipe may wait for its reader
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// save writes a file as a whole: who reads it finds what was there before or all of it. What is
// no ordinary file, such as a pipe, is written to.
func save(file string, data []byte) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target // a link goes on to be one
	}
	mode := os.FileMode(0o644)
	info, err := os.Stat(file)
	if err == nil {
		if mode = info.Mode().Perm(); !info.Mode().IsRegular() {
			return os.WriteFile(file, data, mode)
		}
	}
	fresh := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+"-"+rand.Text()[:8])
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if errors.Is(err, os.ErrPermission) && info != nil {
		return os.WriteFile(file, data, mode) // in a directory where nothing can be added
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(fresh, file)
	}
	if err != nil {
		_ = os.Remove(fresh)
	}
	return err
}

// A recording records what is said; it may be nothing. The file keeps what was in it until there
// is something to record.
type recording struct {
	file *os.File // nil for nothing
	made bool     // the file was not there before
	opts trace.RecorderOptions

	begun sync.Once
	rec   *trace.Recorder
}

func (o *Options) record() (*recording, error) {
	if o.Output == "" {
		return &recording{}, nil
	}
	name := o.file(o.Output)
	_, missing := os.Lstat(name)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "--output: %w", err)
	}
	opts := trace.RecorderOptions{Header: trace.Header{Tool: "acp " + o.App.Version, Command: o.Argv, Redacted: true}, Redactor: &trace.Redactor{}}
	return &recording{file: f, made: missing != nil, opts: opts}, nil
}

// begin returns the recorder, or nil if nothing is recorded.
func (r *recording) begin() *trace.Recorder {
	if r.file != nil {
		r.begun.Do(func() {
			_ = r.file.Truncate(0) // pipes cannot be, and are empty
			r.rec = trace.NewRecorder(r.file, r.opts)
		})
	}
	return r.rec
}

func (r *recording) frame(dir trace.Direction, data []byte) {
	if rec := r.begin(); rec != nil {
		rec.Frame(dir, data)
	}
}

func (r *recording) event(name string, d trace.Detail) {
	if rec := r.begin(); rec != nil {
		rec.Event(name, d)
	}
}

// stderr returns what records the standard error of a program, or nil.
func (r *recording) stderr() *stderrWriter {
	if r.file == nil {
		return nil
	}
	return &stderrWriter{to: func(line []byte) { r.begin().Stderr(line) }}
}

// close ends the recording. A file that was made for nothing is removed. It is called when nothing
// is recorded any more.
func (r *recording) close() error {
	switch {
	case r.file == nil:
		return nil
	case r.rec != nil:
		return errors.Join(r.rec.Close(), r.file.Close())
	}
	err := r.file.Close()
	if r.made {
		err = errors.Join(err, os.Remove(r.file.Name()))
	}
	return err
}
