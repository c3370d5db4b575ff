package tap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/cmd/acp/internal/record/page"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/trace"
)

// A recording is a recording in progress, and the live page that shows it.
type recording struct {
	*trace.Recorder
	file *os.File // nil if nothing is recorded
	name string
	quit func() // closes the page; nil without one
}

// startRecording opens the file and starts recording. A file that the user has named must be
// usable. If the default file cannot be created, that is only reported: the editor wants its agent
// more than a recording.
func (o *Options) startRecording(agent string, c process.Config) (*recording, error) {
	a := o.App
	opts := trace.RecorderOptions{Header: trace.Header{
		Started: time.Now(), Tool: "acp " + a.Version, Command: append([]string{c.Path}, c.Args...),
	}}
	if !o.NoRedact {
		opts.Redactor, opts.Header.Redacted = new(trace.Redactor), true
		opts.Header.Command = opts.Redactor.Command(opts.Header.Command)
	}
	rec := new(recording)
	f, err := o.openFile(agent)
	if err != nil && o.Output != "" {
		return nil, exitcode.Errorf(exitcode.Usage, "--output: %w", err)
	}
	var w *trace.Writer
	if err == nil {
		rec.file, rec.name = f, f.Name()
		w, err = trace.Append(f, opts.Header)
	}
	if errors.Is(err, trace.ErrNotTrace) || errors.Is(err, trace.ErrVersion) {
		_ = f.Close()
		return nil, exitcode.Errorf(exitcode.Usage, "cannot record to %s: %w", rec.name, err)
	}
	o.openPage(rec, agent, &opts)
	switch {
	case w != nil:
		// The recorder retries a failed write, so an error from Append is not final.
		rec.Recorder = trace.NewRecorderTo(w, opts.Header.Started, opts)
	default:
		fmt.Fprintf(a.Err, "acp tap: nothing is recorded: %v\n", err)
		rec.Recorder = trace.NewRecorder(io.Discard, opts)
	}
	if w != nil && a.ErrTerminal {
		fmt.Fprintf(a.Err, "acp tap: recording to %s\n", rec.name)
	}
	return rec, nil
}

// anyAddr is the value of --web without an address: any free port.
const anyAddr = "auto"

// openPage opens the live page if --web is given, and prints its address. A failure is only
// reported.
func (o *Options) openPage(rec *recording, agent string, opts *trace.RecorderOptions) {
	if o.Web == "" {
		return
	}
	addr := o.Web
	if addr == anyAddr {
		addr = ""
	}
	server, err := page.New(page.Options{Title: plainName(agent), Header: opts.Header, File: rec.name, Addr: addr})
	if err != nil {
		fmt.Fprintf(o.App.Err, "acp tap: the page cannot be served: %v\n", err)
		return
	}
	opts.Tee = server.Record
	rec.quit = func() { _ = server.Close() }
	fmt.Fprintf(o.App.Err, "acp tap: see the traffic at %s\n", server.URL())
}

// openFile opens the file to record to. Only its owner can read it.
func (o *Options) openFile(agent string) (*os.File, error) {
	name, err := o.fileName(agent)
	if err != nil {
		return nil, err
	}
	return file.OpenFree(name)
}

// fileName returns the name of the file to record to.
func (o *Options) fileName(agent string) (string, error) {
	name := o.Output
	if name != "" && !filepath.IsAbs(name) {
		name = filepath.Join(o.App.Cwd, name)
	}
	if info, err := os.Stat(name); name != "" && (err != nil || !info.IsDir()) {
		return name, nil
	}
	if name == "" {
		cfg, err := o.App.Config()
		switch {
		case err != nil:
			return "", err
		case cfg.Dirs.State == "":
			return "", errors.New("there is no home directory; name a file with -o")
		}
		name = filepath.Join(cfg.Dirs.State, "traces")
		if err := os.MkdirAll(name, 0o700); err != nil {
			return "", err
		}
	}
	return filepath.Join(name, time.Now().UTC().Format("20060102T150405.000Z")+"-"+plainName(agent)+".acptrace"), nil
}

// plainName returns a file name for an agent: at most 40 ASCII characters of its name, or of the
// program in its command line.
func plainName(agent string) string {
	word, _, _ := strings.Cut(agent, " ")
	word = filepath.Base(word)
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return -1
	}, word)
	if name = strings.Trim(name[:min(len(name), 40)], "."); name == "" {
		return "agent"
	}
	return name
}

// close ends the recording and returns the problems to report, if any.
func (r *recording) close() (problems []string) {
	err := r.Recorder.Close()
	if r.quit != nil {
		r.quit()
	}
	if r.file == nil {
		return nil
	}
	if e := r.file.Close(); err == nil {
		err = e
	}
	lost := r.Lost()
	switch {
	case err != nil:
		problems = append(problems, fmt.Sprintf("the recording is incomplete: %v", err))
	case lost.Records > 0:
		problems = append(problems, fmt.Sprintf("the recording %s is incomplete: %d records of %d bytes are missing", r.name, lost.Records, lost.Bytes))
	}
	return problems
}
