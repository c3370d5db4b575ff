package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/config"
)

// FileName is the name of the file in which projects name their MCP servers.
const FileName = ".mcp.json"

// Bounds of files: maxFile of their size, maxServers of the servers in them.
const (
	maxFile    = 1 << 20
	maxServers = 256
)

// entry is a server in a file.
type entry struct {
	Command  *string           `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	Type     string            `json:"type"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Disabled bool              `json:"disabled"`
}

// A Left is a server that is left out of a file because a variable is not set, which others who have
// the file may have set.
type Left struct {
	Name string
	Why  string // a line for people, beginning with file:line:column
}

// ParseFile reads a file like .mcp.json:
//
//	{"mcpServers": {
//		"files": {"command": "mcp-files", "args": ["${HOME}"], "env": {"LEVEL": "${LEVEL:-1}"}},
//		"web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
//	}}
//
// In every text ${NAME} is replaced by the value of a variable, and ${NAME:-text} by text if it is
// not set or empty; lookup returns the values. A server that needs a variable which is not set is
// left out, and is in left. Members that are not known are passed over, since
// other programs have their own; a server that is "disabled" is left out. Errors begin with
// file:line:column, name is the file.
//
// Without lookup the servers are as they are written there, for people to read: nothing is
// replaced, and what only the values can make wrong is not found.
func ParseFile(name string, data []byte, lookup func(string) (string, bool)) (list []Server, left []Left, err error) {
	before := func(offset int64) []byte { return data[:max(0, min(int(offset), len(data)))] }
	line := func(offset int64) int { return bytes.Count(before(offset), []byte("\n")) + 1 }
	at := func(offset int64) string {
		b := before(offset)
		return fmt.Sprintf("%s:%d:%d", name, line(offset), len(b)-(bytes.LastIndexByte(b, '\n')+1)+1)
	}
	if len(data) > maxFile {
		return nil, nil, fmt.Errorf("%s: more than %d bytes", name, maxFile)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	fail := func(offset int64, format string, args ...any) error {
		return fmt.Errorf("%s: %w", at(offset), fmt.Errorf(format, args...))
	}
	broken := func(err error) error {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return fail(max(syntax.Offset-1, 0), "%w", err)
		case errors.As(err, &kind):
			return fail(dec.InputOffset(), "%s must not be a JSON %s", kind.Field, kind.Value)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fail(int64(len(data)), "the file ends too early")
		}
		return fail(dec.InputOffset(), "%w", err)
	}
	found := false
	err = object(dec, func(key string) error {
		if key != "mcpServers" {
			var skip json.RawMessage
			return dec.Decode(&skip)
		}
		found = true
		return object(dec, func(server string) error {
			start := skipSpace(data, dec.InputOffset())
			if len(list) >= maxServers {
				return fail(start, "more than %d servers", maxServers)
			}
			if slices.ContainsFunc(list, func(s Server) bool { return s.Name == server }) {
				return fail(start, "server %q is there twice", server)
			}
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				return err
			}
			var e entry
			if err := json.Unmarshal(raw, &e); err != nil {
				var kind *json.UnmarshalTypeError
				if errors.As(err, &kind) {
					return fail(start+max(kind.Offset-1, 0), "server %q: %s must not be a JSON %s", server, kind.Field, kind.Value)
				}
				return fail(start, "server %q: %w", server, err)
			}
			if e.Disabled {
				return nil
			}
			s := Server{Name: server, Source: name, Line: line(start), Args: e.Args, Env: e.Env, Type: e.Type, URL: e.URL, Headers: e.Headers}
			if e.Command != nil {
				s.Command = *e.Command
			}
			if lookup != nil {
				err := s.ready(lookup)
				if errors.As(err, new(*unsetError)) {
					left = append(left, Left{server, fmt.Sprintf("%s: the MCP server %q is left out: %v", at(start), server, err)})
					return nil
				}
				if err != nil {
					return fail(start, "server %q: %w", server, err)
				}
			}
			list = append(list, s)
			return nil
		})
	})
	if err == nil {
		if _, extra := dec.Token(); !errors.Is(extra, io.EOF) {
			return nil, nil, fail(dec.InputOffset(), "there is something after the end")
		}
		if !found {
			return nil, nil, fail(0, "no mcpServers in it")
		}
		return list, left, nil
	}
	if strings.HasPrefix(err.Error(), name+":") {
		return nil, nil, err
	}
	return nil, nil, broken(err)
}

func skipSpace(data []byte, offset int64) int64 {
	for offset < int64(len(data)) && strings.IndexByte(" \t\r\n:", data[offset]) >= 0 {
		offset++
	}
	return offset
}

// object reads an object; member reads the value of each member.
func object(dec *json.Decoder, member func(key string) error) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return errors.New("an object is expected here")
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return errors.New("a name is expected here")
		}
		if err := member(key); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// ready replaces variables and returns what is wrong with the server then.
func (s *Server) ready(lookup func(string) (string, bool)) error {
	if err := s.expand(lookup); err != nil {
		return err
	}
	return s.check()
}

// expand replaces variables in all texts except the name.
func (s *Server) expand(lookup func(string) (string, bool)) error {
	var failed error
	one := func(v string) string {
		out, err := Expand(v, lookup)
		if err != nil && failed == nil {
			failed = err
		}
		return out
	}
	all := func(m map[string]string) map[string]string {
		if m == nil {
			return nil
		}
		out := make(map[string]string, len(m))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			out[k] = one(m[k])
		}
		return out
	}
	s.Command, s.URL = one(s.Command), one(s.URL)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		s.Args[i] = one(s.Args[i])
	}
	s.Env, s.Headers = all(s.Env), all(s.Headers)
	return failed
}

// Expand replaces ${NAME} and ${NAME:-default} in a text. Anything that does not have that form
// stays. A variable that is not set and has no default is an error.
func Expand(s string, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		inner, after, ok := strings.Cut(rest, "}")
		name, def, hasDef := strings.Cut(inner, ":-")
		if !ok || !variable(name) {
			b.WriteString("${")
			s = rest
			continue
		}
		v, set := lookup(name)
		switch {
		case set && (v != "" || !hasDef):
			b.WriteString(v)
		case hasDef:
			b.WriteString(def)
		default:
			return "", &unsetError{name}
		}
		s = after
	}
}

// An unsetError says that a variable is not set that has no default.
type unsetError struct{ name string }

func (e *unsetError) Error() string {
	return fmt.Sprintf("variable %s is not set (${%s:-text} gives a default)", e.name, e.name)
}

func variable(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// ParseFlags parses the values of --mcp and --mcp-header. A server is NAME=COMMAND ARGS…, split as
// by a shell that knows quotes and backslashes only, or NAME=https://…, or NAME=sse+https://… for
// one with server-sent events. A header is NAME:HEADER:VALUE or NAME:HEADER=VALUE for the server of
// that name. In the values ${NAME} and ${NAME:-default} are replaced, so that secrets need not be
// on the command line. Without lookup nothing is replaced, as in [ParseFile].
func ParseFlags(servers, headers []string, lookup func(string) (string, bool)) ([]Server, error) {
	var list []Server
	for _, v := range servers {
		name, what, ok := strings.Cut(v, "=")
		name, what = strings.TrimSpace(name), strings.TrimSpace(what)
		if !ok || name == "" || what == "" {
			return nil, fmt.Errorf("--mcp %q: NAME=COMMAND ARGS or NAME=URL is expected", v)
		}
		s := Server{Name: name, Source: SourceFlag}
		address, isSSE := strings.CutPrefix(what, "sse+")
		if strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://") {
			s.Type, s.URL = HTTP, address
			if isSSE {
				s.Type = SSE
			}
		} else {
			words, err := splitWords(what)
			if err != nil {
				return nil, fmt.Errorf("--mcp %s: %w", name, err)
			}
			s.Type, s.Command, s.Args = Stdio, words[0], words[1:]
		}
		if slices.ContainsFunc(list, func(o Server) bool { return o.Name == name }) {
			return nil, fmt.Errorf("--mcp %s is there twice", name)
		}
		list = append(list, s)
	}
	for _, v := range headers {
		name, header, ok := strings.Cut(v, ":")
		i := slices.IndexFunc(list, func(s Server) bool { return s.Name == name })
		sep := strings.IndexAny(header, ":=")
		switch {
		case !ok || sep <= 0:
			return nil, fmt.Errorf("--mcp-header for %q: NAME:HEADER=VALUE is expected", name)
		case i < 0:
			return nil, fmt.Errorf("--mcp-header for %q: there is no --mcp of that name", name)
		}
		if list[i].Headers == nil {
			list[i].Headers = map[string]string{}
		}
		list[i].Headers[strings.TrimSpace(header[:sep])] = strings.TrimSpace(header[sep+1:])
	}
	for i := range list {
		s := &list[i]
		if lookup == nil {
			continue
		}
		err := s.ready(lookup)
		if err != nil {
			return nil, fmt.Errorf("--mcp %s: %w", s.Name, err)
		}
	}
	return list, nil
}

// splitWords splits a command line. White space separates words, unless it is within '…' or "…". A
// backslash makes the next character ordinary, except within '…'; within "…" it does so only before
// ", \ and $.
func splitWords(s string) ([]string, error) {
	var words []string
	var b strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == '\'' && c != quote, quote == '"' && c != quote && c != '\\':
			b.WriteByte(c)
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\':
			switch {
			case i+1 == len(s):
				return nil, errors.New("it ends with a backslash")
			case quote == '"' && strings.IndexByte("\"\\$", s[i+1]) < 0:
				b.WriteByte(c)
			default:
				i++
				b.WriteByte(s[i])
			}
			in = true
		case c == '\'' || c == '"':
			quote, in = c, true
		case strings.IndexByte(" \t\r\n", c) >= 0:
			if in {
				words = append(words, b.String())
				b.Reset()
				in = false
			}
		default:
			b.WriteByte(c)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a %c is not closed", quote)
	}
	if in {
		words = append(words, b.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("there is no command")
	}
	return words, nil
}

// FromConfig returns the servers of the settings, by name.
func FromConfig(servers map[string]config.MCPServer, lookup func(string) (string, bool)) ([]Server, error) {
	var list []Server
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		c := servers[name]
		if c.Off {
			continue
		}
		s := Server{Name: name, Source: SourceSettings, Command: c.Command, Args: c.Args, Env: c.Env, Type: c.Type, URL: c.URL, Headers: c.Headers}
		err := s.ready(lookup)
		if err != nil {
			return nil, fmt.Errorf("setting mcp.%s: %w", name, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// Sources are the places where servers are named, in rising order: the project's file, the
// settings, flags. Of servers with the same name the last one counts.
type Sources struct {
	// File is the project's .mcp.json and Data its contents; File is "" if there is none. The
	// caller must find out whether the user trusts it.
	File     string
	Data     []byte
	Settings map[string]config.MCPServer
	// Flags and Headers are the values of --mcp and --mcp-header.
	Flags, Headers []string
	// Lookup returns the value of a variable; see [os.LookupEnv].
	Lookup func(string) (string, bool)
}

// beside returns the program that a command in a file means. A command with a separator is relative
// to the directory of the file, and not to the working directory, which may be anybody's.
func beside(file, command string) string {
	if filepath.IsAbs(command) || !strings.ContainsRune(command, '/') && !strings.ContainsRune(command, filepath.Separator) {
		return command
	}
	return filepath.Join(filepath.Dir(file), command)
}

// Collect returns the servers of all sources. A server that the settings turn off is left out, even
// if the project's file names it. left are the servers of that file that are left out because of a
// variable, and that no other source names.
func Collect(src Sources) (list []Server, left []Left, err error) {
	var project []Server
	if src.File != "" {
		if project, left, err = ParseFile(src.File, src.Data, src.Lookup); err != nil {
			return nil, nil, err
		}
		project = slices.DeleteFunc(project, func(s Server) bool { return src.Settings[s.Name].Off })
		for i := range project {
			project[i].Command = beside(src.File, project[i].Command)
		}
	}
	settings, err := FromConfig(src.Settings, src.Lookup)
	if err != nil {
		return nil, nil, err
	}
	flags, err := ParseFlags(src.Flags, src.Headers, src.Lookup)
	if err != nil {
		return nil, nil, err
	}
	list = Merge(project, settings, flags)
	left = slices.DeleteFunc(left, func(l Left) bool {
		return src.Settings[l.Name].Off || slices.ContainsFunc(list, func(s Server) bool { return s.Name == l.Name })
	})
	return list, left, nil
}
