package tap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/record/page"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/trace"
)

// A recording is one that runs.
type recording struct {
	*trace.Recorder
	file *os.File // nil if there is none
	name string
	quit func() // closes the page; nil if there is none
}

// record begins to record. An error says that the file that was named cannot be recorded to. That there
// can be none in the state directory is told, and does not hold up the conversation.
func (o *Options) record(agent string, c process.Config) (*recording, error) {
	a := o.App
	opts := trace.RecorderOptions{Header: trace.Header{
		Started: time.Now(), Tool: "acp " + a.Version, Command: append([]string{c.Path}, c.Args...),
	}}
	if !o.NoRedact {
		opts.Redactor, opts.Header.Redacted = new(trace.Redactor), true
		opts.Header.Command = opts.Redactor.Command(opts.Header.Command)
	}
	rec := new(recording)
	f, err := o.open(agent)
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
		return nil, exitcode.Errorf(exitcode.Usage, "%s is not recorded to: %w", rec.name, err)
	}
	o.page(rec, agent, &opts)
	switch {
	case w != nil:
		// What could not be written yet is tried again.
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

// anyAddr stands for an address of the page that nobody has named.
const anyAddr = "auto"

// page opens the live page, if it is wanted, and says where. Without one the conversation goes on.
func (o *Options) page(rec *recording, agent string, opts *trace.RecorderOptions) {
	if o.Web == "" {
		return
	}
	addr := o.Web
	if addr == anyAddr {
		addr = ""
	}
	server, err := page.New(page.Options{Title: plainName(agent), Header: opts.Header, File: rec.name, Addr: addr})
	if err != nil {
		fmt.Fprintf(o.App.Err, "acp tap: there is no page: %v\n", err)
		return
	}
	opts.Tee = server.Record
	rec.quit = func() { _ = server.Close() }
	fmt.Fprintf(o.App.Err, "acp tap: what passes is shown at %s\n", server.URL())
}

// open opens the file to record to, which is only for the user to read. One that another tap records
// to is left to it: editors start the same command more than once.
func (o *Options) open(agent string) (*os.File, error) {
	name, err := o.file(agent)
	if err != nil {
		return nil, err
	}
	f, err := openLocked(name)
	if errors.Is(err, errTaken) {
		ext := filepath.Ext(name)
		f, err = openLocked(strings.TrimSuffix(name, ext) + "-" + strconv.Itoa(os.Getpid()) + ext)
	}
	return f, err
}

var errTaken = errors.New("another acp tap records to it")

func openLocked(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "windows" {
		return f, nil // locks keep readers away there
	}
	// Where there are no locks it is as if nobody had one.
	if ok, err := filelock.TryLock(f, true); err == nil && !ok {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", name, errTaken)
	}
	return f, nil
}

// file returns the name of the file to record to.
func (o *Options) file(agent string) (string, error) {
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
			return "", errors.New("there is no home directory; -o names a file")
		}
		name = filepath.Join(cfg.Dirs.State, "traces")
		if err := os.MkdirAll(name, 0o700); err != nil {
			return "", err
		}
	}
	return filepath.Join(name, time.Now().UTC().Format("20060102T150405.000Z")+"-"+plainName(agent)+".acptrace"), nil
}

// plainName returns what a file can be called after an agent: the program, of a command line.
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

// close ends the recording and returns what went wrong with it.
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
		problems = append(problems, fmt.Sprintf("the recording is not complete: %v", err))
	case lost.Records > 0:
		problems = append(problems, fmt.Sprintf("the recording %s is not complete: %d records of %d bytes are missing", r.name, lost.Records, lost.Bytes))
	}
	return problems
}
