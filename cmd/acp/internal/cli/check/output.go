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

// file returns the path of a file, relative to the App's directory.
func (o *Options) file(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(o.App.Cwd, name)
}

// writable checks, before anything is started, whether all reports can be written. A check may take
// minutes, and its result must not be lost at the end.
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
			continue // openRecording opens it before anything is started
		}
		if err := tryWriting(file); err != nil {
			return exitcode.Errorf(exitcode.Usage, "%s: %w", flag, err)
		}
	}
	return nil
}

// tryWriting checks whether save will be able to write a file, and leaves the file unchanged.
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

// save replaces a file at once: a reader finds the old content or all of the new one. Anything that
// is not a regular file, such as a pipe, is written to directly.
func save(file string, data []byte) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target // a link stays a link
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
		return os.WriteFile(file, data, mode) // the file may be written, but not its directory
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

// A recording records the traffic, or nothing without --output. An existing file keeps its content
// until there is something to record, so that a failed start destroys nothing.
type recording struct {
	file *os.File // nil if nothing is recorded
	made bool     // the file did not exist before
	opts trace.RecorderOptions

	begun sync.Once
	rec   *trace.Recorder
}

// openRecording opens the file of --output, if it is given.
func (o *Options) openRecording() (*recording, error) {
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
			_ = r.file.Truncate(0) // fails for a pipe, which has no content to remove
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

// stderr returns a writer that records the standard error of a program, or nil if nothing is
// recorded.
func (r *recording) stderr() *stderrWriter {
	if r.file == nil {
		return nil
	}
	return &stderrWriter{to: func(line []byte) { r.begin().Stderr(line) }}
}

// close ends the recording, after everything else has ended. It removes a file that openRecording
// has created and that is still empty.
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
