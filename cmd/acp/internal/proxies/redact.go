package proxies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/withheld"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// Bounds of the proxy redact.
const (
	minSecret  = 8       // bytes of a value that is looked for
	maxSecrets = 1000    // that have a mark of their own
	maxEnvFile = 1 << 20 // bytes of a file with secrets
	maxOrigins = 1000    // files of which it is known which secrets were in them
	maxAsked   = 20      // secrets that one question is about
)

// redact is the proxy that keeps secrets from the agent.
func redact() Kind {
	return Kind{
		Name:  "redact",
		Short: "Keep secrets out of prompts and tool output",
		Long: `Replace secrets by marks such as «secret 1 x3k9» before the agent sees them: in prompts, in
the files and the output of terminals that the client lends, and in its other answers; and
in what the agent reports, before the client sees it. A secret is the value of an
environment variable whose name says so, such as GITHUB_TOKEN, of one that --env names or
that is in the file of --env-file, also in base64, hexadecimal or escaped; and anything that
looks like a token or a private key.

When the agent writes a file through the client, the marks in it become the secrets again:
at once if the file had the secret when the agent read it, and otherwise after the client
has permitted it. Marks in commands are never replaced.

Text that comes in pieces is looked at as a whole, for which its last word waits for the next
piece, five seconds at most: a secret may be in several. Secrets in base64 are found across the ends of lines, too.

This is for accidents, not a sandbox: what an agent reads by itself, without the client,
passes no proxy, and a command can print a secret in a form that nothing recognizes. The
settings of MCP servers and logins pass as they are, since they must work.`,
		Example: "redact --env DEPLOY_PASS --env-file .env",
		Flags: func(f *pflag.FlagSet) func(Env) (func() (*Running, error), error) {
			names := f.StringArray("env", nil, "replace the value of the environment variable `NAME` (repeatable)")
			files := f.StringArray("env-file", nil, "replace the values in `FILE`, which has lines NAME=VALUE (repeatable)")
			return func(env Env) (func() (*Running, error), error) {
				values, err := secretsOf(env, *names, *files)
				if err != nil {
					return nil, err
				}
				return func() (*Running, error) {
					r := &redacting{marks: newMarks(values), origins: map[string]map[string]bool{}}
					return &Running{Proxy: &acp.Proxy{Name: "redact", Request: r.request, Notify: r.notify}}, nil
				}, nil
			}
		},
	}
}

// secretsOf returns the values that are secret.
func secretsOf(env Env, names, files []string) ([]string, error) {
	values := withheld.Of(os.Environ(), nil, nil).Values()
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); len(value) >= minSecret && trace.SecretName(strings.ToUpper(name)) {
			values = append(values, value)
		}
	}
	for _, name := range names {
		value := os.Getenv(name)
		if len(value) < minSecret {
			return nil, fmt.Errorf("--env %s: the variable is not set, or has fewer than %d bytes, "+
				"which may be part of anything", name, minSecret)
		}
		values = append(values, value)
	}
	for _, name := range files {
		data, err := readRegular(env.file(name), maxEnvFile)
		if err != nil {
			return nil, fmt.Errorf("--env-file: %w", err)
		}
		if len(data) > maxEnvFile {
			return nil, fmt.Errorf("--env-file: %s is larger than %d bytes", name, maxEnvFile)
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
			if _, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
				if value = strings.Trim(strings.TrimSpace(value), `"'`); len(value) >= minSecret {
					values = append(values, value)
				}
			}
		}
	}
	return values, nil
}

// A redacting is the proxy for one client.
type redacting struct {
	*marks
	order   sync.Mutex // of what goes to the client and may be a piece of a text
	streams streams

	mu      sync.Mutex
	origins map[string]map[string]bool // marks of the secrets that files had when the agent read them
}

func (r *redacting) notify(ctx context.Context, m *acp.ProxyMessage, next func(context.Context) error) error {
	var err error
	if m.Direction == acp.ToClient && m.Session != nil {
		var held bool
		if m.Method != "session/update" {
			err = r.flush(ctx, m.Session)
		} else {
			r.order.Lock()
			defer r.order.Unlock()
			if held, err = r.piece(ctx, m); held {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	if m.Params, err = r.whole(m.Params); err != nil {
		return err
	}
	return next(ctx)
}

func (r *redacting) request(ctx context.Context, m *acp.ProxyMessage, next func(context.Context) error) (err error) {
	if m.Direction == acp.ToAgent {
		switch m.Method {
		case "authenticate", "auth/login", "providers/set":
		case "session/new", "session/load", "session/resume", "session/fork":
			m.Params, err = r.members(m.Params, "systemPrompt", "_meta")
		default:
			m.Params, err = r.whole(m.Params)
		}
		if err != nil {
			return err
		}
		err = next(ctx)
		switch m.Method {
		case "session/prompt":
			if m.Session == nil || m.Session.Version() != 1 { // it has only begun
				return err
			}
			fallthrough
		case "session/load", "session/resume", "session/close", "session/delete": // what belongs to it has come
			if failed := r.flush(ctx, m.Session); err == nil {
				err = failed
			}
		}
		return err
	}
	if err := r.flush(ctx, m.Session); err != nil {
		return err
	}
	path := ""
	if m.Method == acpv1.MethodFSWriteTextFile.Name {
		err = r.write(ctx, m)
	} else {
		if m.Method != acpv1.MethodTerminalCreate.Name {
			m.Params, err = r.whole(m.Params)
		}
		if m.Method == acpv1.MethodFSReadTextFile.Name {
			path = pathOf(m.Params)
		}
	}
	if err != nil {
		return err
	}
	if err := next(ctx); err != nil {
		return r.err(err)
	}
	if m.Method == acpv1.MethodTerminalOutput.Name {
		m.Result, err = r.output(m.Result)
	} else {
		m.Result, err = r.whole(m.Result)
	}
	if path != "" {
		r.read(path, m.Result)
	}
	return err
}

// err removes secrets from the error of a client.
func (r *redacting) err(err error) error {
	said, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return err
	}
	data, failed := r.whole(said.Data)
	if failed != nil {
		data = nil
	}
	return &jsonrpc.Error{Code: said.Code, Message: r.text(said.Message), Data: data}
}

// pathOf returns the file that a client reads, as it and write read the params: encoding/json would take a member Path
// for path. If they are wrong, it returns "": the client says what is wrong with them.
func pathOf(params json.RawMessage) string {
	var p acpv1.ReadTextFileRequest
	if p.UnmarshalJSON(params) != nil {
		return ""
	}
	return filepath.Clean(p.Path)
}

// read remembers which secrets a file has.
func (r *redacting) read(path string, result json.RawMessage) {
	found := r.in(string(result))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, mark := range found {
		if r.origins[path] == nil {
			if len(r.origins) >= maxOrigins {
				return // it is asked
			}
			r.origins[path] = map[string]bool{}
		}
		r.origins[path][mark] = true
	}
}

// write puts secrets back into a file that the agent writes.
func (r *redacting) write(ctx context.Context, m *acp.ProxyMessage) error {
	var params acpv1.WriteTextFileRequest
	if err := params.UnmarshalJSON(m.Params); err != nil {
		return jsonrpc.ErrInvalidParams
	}
	found := r.in(params.Content)
	if len(found) == 0 {
		return nil
	}
	path := filepath.Clean(params.Path)
	var asked []string
	r.mu.Lock()
	for _, mark := range found {
		if !r.origins[path][mark] && !slices.Contains(asked, mark) && len(asked) <= maxAsked {
			asked = append(asked, mark)
		}
	}
	r.mu.Unlock()
	if len(asked) > 0 {
		if err := r.permitted(ctx, m, &params, asked); err != nil {
			return err
		}
	}
	params.Content = r.restore(params.Content)
	var err error
	m.Params, err = params.AppendJSON(nil)
	return err
}

// permitted asks the client whether secrets may be written, all of which the question names. An error is the agent's
// answer.
func (r *redacting) permitted(
	ctx context.Context, m *acp.ProxyMessage, w *acpv1.WriteTextFileRequest, asked []string,
) error {
	what, each := "secret", "the secret it stands for"
	if len(asked) > 1 {
		what, each = "secrets", "the secrets they stand for"
	}
	list := strings.Join(asked, ", ")
	reason := "the file has not had the " + what + " " + list + ", and the user has not permitted to write that there"
	if len(asked) > maxAsked {
		reason = fmt.Sprintf("the file would get more than %d secrets that it has not had; write it in parts", maxAsked)
	}
	refused := jsonrpc.Errorf(jsonrpc.CodeInternalError, "Permission denied").WithData(map[string]string{"reason": reason})
	if m.Session == nil || len(asked) > maxAsked {
		return refused
	}
	question := map[string]any{
		"sessionId": w.SessionID,
		"toolCall": map[string]any{
			"toolCallId": "acp-redact-" + strings.Trim(asked[0], "«»"), "kind": "edit", "status": "pending",
			"title":     "Write " + list + " as " + each + " into " + safetext.Line(w.Path, 300),
			"locations": []map[string]string{{"path": w.Path}},
			"content":   []map[string]any{{"type": "diff", "path": w.Path, "newText": w.Content}},
		},
		"options": []map[string]string{
			{"optionId": "allow", "name": "Allow", "kind": "allow_once"},
			{"optionId": "reject", "name": "Reject", "kind": "reject_once"},
		},
	}
	var result struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	err := m.Session.Call(ctx, acp.ToClient, "session/request_permission", question, &result)
	if err != nil || result.Outcome.Outcome != "selected" || result.Outcome.OptionID != "allow" {
		return refused
	}
	return nil
}
