package exec

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

const (
	// MaxPrompt bounds the text of a prompt, in bytes.
	MaxPrompt = 16 << 20
	// MaxAttachment bounds a file that is sent with its content, in bytes. A larger file is sent as
	// a link.
	MaxAttachment = 8 << 20
	// stdinPatience is how long standard input may stay open before the user is informed that acp
	// waits for its end: a script that inherits an open pipe would otherwise hang without a word.
	stdinPatience = 3 * time.Second
)

// promptText returns the text of the prompt: arguments, files and standard input, separated by
// empty lines.
func (o *Options) promptText(ctx context.Context) (string, error) {
	var parts []string
	size := 0
	add := func(text string) error {
		if size += len(text); size > MaxPrompt {
			return exitcode.Errorf(exitcode.Usage, "the prompt is longer than %d MiB; attach large files with --attach FILE", MaxPrompt>>20)
		}
		if !utf8.ValidString(text) {
			return exitcode.Errorf(exitcode.Usage, "the prompt is not UTF-8 text; attach other files with --attach FILE")
		}
		if text = strings.TrimRight(text, "\r\n"); strings.TrimSpace(text) != "" {
			parts = append(parts, text)
		}
		return nil
	}
	files := o.Files
	if len(o.Prompt) == 1 && o.Prompt[0] == "-" { // the customary name of standard input
		files = append([]string{"-"}, files...)
	} else if err := add(strings.Join(o.Prompt, " ")); err != nil {
		return "", err
	}
	given := len(parts) > 0 || len(files) > 0
	stdin := false
	for _, name := range files {
		if name == "-" {
			if stdin {
				return "", exitcode.Errorf(exitcode.Usage, "- is given twice, but standard input can be read only once")
			}
			stdin = true
			text, err := o.readStdin(ctx)
			if err == nil {
				err = add(text)
			}
			if err != nil {
				return "", err
			}
			continue
		}
		data, err := readFile(o.path(name), MaxPrompt+1)
		if err != nil {
			return "", exitcode.Errorf(exitcode.Usage, "--file: %w", err)
		}
		if err := add(string(data)); err != nil {
			return "", err
		}
	}
	if !stdin && !o.NoStdin && o.hasStdin(given) {
		text, err := o.readStdin(ctx)
		if err == nil {
			err = add(text)
		}
		if err != nil {
			return "", err
		}
	}
	if len(parts) == 0 && len(o.Attach) == 0 {
		hint := "; give it as arguments, with --file, or on standard input"
		if o.Agent != "" && len(o.Prompt) == 0 {
			hint = fmt.Sprintf(" for the agent %s", o.Agent) + hint
		}
		return "", exitcode.Errorf(exitcode.Usage, "there is no prompt%s", hint)
	}
	return strings.Join(parts, "\n\n"), nil
}

// hasStdin reports whether standard input is part of the prompt. If nothing else is given, that is
// anything except a terminal. Otherwise it is only a pipe or a file, because the other things that
// programs are started with, such as a socket or the null device, are rarely meant as input.
func (o *Options) hasStdin(given bool) bool {
	if o.App.In == nil || o.App.InTerminal {
		return false
	}
	f, ok := o.App.In.(*os.File)
	if !given || !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

// readStdin reads standard input to its end, or until ctx is done. In the latter case the reading
// goroutine stays behind: a blocked read cannot be cancelled, and the program is about to exit.
func (o *Options) readStdin(ctx context.Context) (string, error) {
	if o.App.InTerminal {
		fmt.Fprintln(o.App.Err, "acp: type the prompt, then press Ctrl-D")
	}
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(o.App.In, MaxPrompt+1))
		done <- read{data, err}
	}()
	patience := time.NewTimer(stdinPatience)
	defer patience.Stop()
	for {
		select {
		case r := <-done:
			if r.err != nil {
				return "", fmt.Errorf("standard input: %w", r.err)
			}
			return string(r.data), nil
		case <-patience.C:
			if !o.App.InTerminal {
				fmt.Fprintln(o.App.Err, "acp: waiting for the end of standard input, which is part of the prompt; --no-stdin ignores it")
			}
		case <-ctx.Done():
			return "", fmt.Errorf("while reading standard input: %w", context.Cause(ctx))
		}
	}
}

// path returns the absolute name of a file that a flag names. It is relative to the directory in
// which the program was started, not to --cwd, because the shell has completed it there.
func (o *Options) path(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// readFile reads a file, but at most its first bytes.
func readFile(name string, most int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// An attachment is a file or directory that is attached to the prompt.
type attachment struct {
	name string // absolute
	size uint64
	kind string // media type
	data []byte // nil if it is sent as a link only
}

// attachments reads the files of --attach.
func (o *Options) attachments() ([]attachment, error) {
	var list []attachment
	for _, name := range o.Attach {
		a := attachment{name: o.path(name)}
		info, err := os.Stat(a.name)
		if err != nil {
			return nil, exitcode.Errorf(exitcode.Usage, "--attach: %w", err)
		}
		if !info.Mode().IsRegular() {
			if !info.IsDir() {
				return nil, exitcode.Errorf(exitcode.Usage, "--attach: %s is neither a file nor a directory", name)
			}
			a.kind = "inode/directory"
			list = append(list, a)
			continue
		}
		a.size = uint64(info.Size())
		data, err := readFile(a.name, MaxAttachment+1)
		if err != nil {
			return nil, exitcode.Errorf(exitcode.Usage, "--attach: %w", err)
		}
		a.kind = mediaType(a.name, data)
		if len(data) <= MaxAttachment {
			a.data = data
		}
		list = append(list, a)
	}
	return list, nil
}

// mediaType returns the media type of a file. For images and sounds the content decides, because
// agents reject those with a wrong type; for everything else the name does.
func mediaType(name string, data []byte) string {
	kind, _, _ := mime.ParseMediaType(http.DetectContentType(data[:min(len(data), 512)]))
	if strings.HasPrefix(kind, "image/") || strings.HasPrefix(kind, "audio/") {
		return kind
	}
	if byName, _, err := mime.ParseMediaType(mime.TypeByExtension(filepath.Ext(name))); err == nil && byName != "" {
		return byName
	}
	return kind
}

// content returns the blocks of the prompt in the best form that the agent accepts: embedded if it
// can handle that, and otherwise as a link. notes reports pictures and sounds that become links.
func content(text string, files []attachment, can *acpv2.PromptCapabilities) (blocks []acp.ContentBlock, notes []string) {
	if text != "" {
		blocks = append(blocks, acp.Text(text))
	}
	if can == nil {
		can = new(acpv2.PromptCapabilities)
	}
	for _, f := range files {
		uri := fileURI(f.name)
		image := strings.HasPrefix(f.kind, "image/")
		audio := strings.HasPrefix(f.kind, "audio/")
		switch {
		case f.data == nil:
		case image && can.Image != nil:
			blocks = append(blocks, &acpv2.ImageContent{Data: base64.StdEncoding.EncodeToString(f.data), MIMEType: f.kind, URI: uri})
			continue
		case audio && can.Audio != nil:
			blocks = append(blocks, &acpv2.AudioContent{Data: base64.StdEncoding.EncodeToString(f.data), MIMEType: f.kind})
			continue
		case image || audio:
			notes = append(notes, fmt.Sprintf("the agent does not accept %s content; it gets a link to %s instead", strings.SplitN(f.kind, "/", 2)[0], f.name))
		case can.EmbeddedContext == nil:
		case utf8.Valid(f.data) && bytes.IndexByte(f.data, 0) < 0:
			blocks = append(blocks, &acpv2.EmbeddedResource{Resource: &acpv2.TextResourceContents{Text: string(f.data), URI: uri, MIMEType: f.kind}})
			continue
		default:
			blocks = append(blocks, &acpv2.EmbeddedResource{Resource: &acpv2.BlobResourceContents{
				Blob: base64.StdEncoding.EncodeToString(f.data), URI: uri, MIMEType: f.kind}})
			continue
		}
		link := &acpv2.ResourceLink{Name: filepath.Base(f.name), URI: uri, MIMEType: f.kind}
		if f.kind != "inode/directory" {
			link.Size = &f.size
		}
		blocks = append(blocks, link)
	}
	return blocks, notes
}

// fileURI returns the file: URI of an absolute path.
func fileURI(name string) string {
	path := filepath.ToSlash(name)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/dir becomes /C:/dir
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
