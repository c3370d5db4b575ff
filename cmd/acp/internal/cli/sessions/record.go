package sessions

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// recording is the format of a recording of the protocol. Only sessions of a gateway have it.
const recording export.Format = "acptrace"

// recordAt writes a recording of a session of a gateway, with its prompts and the ends of its turns. Of a server that
// does not have its history it writes what that sends to a client that loads the session.
func (o *Options) recordAt(ctx context.Context, c *acp.ClientConn, agent roster.Agent, found at.Session) error {
	page := pages(ctx, c)
	_, err := page(&gateway.HistoryRequest{SessionID: found.ID, Limit: 1})
	past := c.Version() > 1 && !errors.Is(err, jsonrpc.ErrMethodNotFound)
	write := func(w io.Writer) error {
		if past {
			return at.Refusal(gateway.ExportHistory(ctx, found.ID, found.Cwd, "acp "+o.App.Version, w, page))
		}
		return o.record(ctx, agent, found, w)
	}
	if o.File == "" || o.File == "-" {
		b := bufio.NewWriter(o.App.Out)
		return errors.Join(write(b), b.Flush())
	}
	name := o.File
	if !filepath.IsAbs(name) && o.App.Cwd != "" {
		name = filepath.Join(o.App.Cwd, name)
	}
	return o.written(writeFile(name, o.Force, write))
}

// pages returns what asks a gateway for the histories of its sessions.
func pages(ctx context.Context, c *acp.ClientConn) func(*gateway.HistoryRequest) (*gateway.HistoryAnswer, error) {
	return func(r *gateway.HistoryRequest) (*gateway.HistoryAnswer, error) {
		return gateway.HistoryMethod.Call(ctx, c.Conn(), r)
	}
}

// written reports how the export to a file has ended.
func (o *Options) written(err error) error {
	shown := safetext.Line(o.File, 500)
	switch {
	case errors.Is(err, fs.ErrExist):
		return exitcode.Errorf(exitcode.Usage, "%s exists already; use --force to overwrite it", shown)
	case err != nil:
		return exitcode.Errorf(exitcode.Of(err), "exporting the session: %w", err)
	}
	_, err = io.WriteString(o.App.Err, "written to "+shown+"\n")
	return err
}

func (o *Options) record(ctx context.Context, agent roster.Agent, found at.Session, w io.Writer) error {
	began := time.Now()
	out, err := trace.NewWriter(w, trace.Header{Started: began, Tool: "acp " + o.App.Version})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var failed error
	frame := func(sent bool, data []byte) {
		dir := trace.ToClient
		if sent {
			dir = trace.ToAgent
		}
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = out.Write(&trace.Record{At: time.Since(began), Kind: trace.Frame, Dir: dir, Data: data})
		}
		if failed == nil && out.Pending() > 1<<20 {
			failed = out.Flush()
		}
	}
	way, err := launch.Transport(agent, launch.Options{})
	if err != nil {
		return err
	}
	client := &acp.Client{Info: acp.Implementation{Name: "acp", Version: o.App.Version}, Logger: o.App.Logger,
		Meta: ownmeta.Of(map[string]bool{"readOnly": true})} // otherwise it is asked what the agent asks
	conn, err := client.Connect(ctx, acp.WrapTransport(way, func(s jsonrpc.Stream) jsonrpc.Stream { return jsonrpc.Tap(s, frame) }))
	if err != nil {
		return err
	}
	_, err = conn.Load(ctx, found.ID, acp.SessionConfig{Cwd: found.Cwd})
	_ = conn.Close()
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(at.Refusal(err), failed, out.Flush())
}
