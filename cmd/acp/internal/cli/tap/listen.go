package tap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/serve"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// listen serves the agent on the network until ctx is done, and records each connection.
func (o *Options) listen(ctx context.Context) error {
	a := o.App
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	agent, err := a.AgentFor(o.Agent, o.Argv)
	if err != nil {
		return err
	}
	command := process.Config{Path: agent.URL}
	if agent.URL == "" {
		command, err = launch.Process(ctx, agent, a.Cwd)
	} else {
		_, err = launch.Transport(agent, launch.Options{})
	}
	if err != nil {
		return err
	}
	if o.Output != "" {
		dir := o.Output
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(a.Cwd, dir)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return exitcode.Errorf(exitcode.Usage, "--output: %s is not a directory, which --listen needs: each connection is recorded to a file of its own", dir)
		}
	}
	name := safetext.Line(agent.Name, 200)
	forward := &serve.Forward{Agent: agent, Dir: a.Cwd, Logger: a.Logger, Note: o.note, Wrap: func(n int64, near jsonrpc.Stream) (jsonrpc.Stream, func()) {
		return o.recorded(fmt.Sprintf("%s-%d", plainName(name), n), command, near)
	}}
	server, err := serve.Open(serve.Config{
		Listen: o.Listen, State: cfg.Dirs.State, Limits: acphttp.Limits{InitializeTimeout: cfg.Timeouts.Connect},
		Serve: forward.Serve, Logger: a.Logger, Note: o.note,
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Out, server.URL()); err != nil {
		return errors.Join(err, server.Close())
	}
	o.note("forwarding to " + name)
	return server.Run(ctx)
}

// recorded returns a stream that is recorded, and the function that ends the recording. A connection
// that cannot be recorded is served all the same.
func (o *Options) recorded(name string, command process.Config, near jsonrpc.Stream) (jsonrpc.Stream, func()) {
	rec, err := o.startRecording(name, command)
	if err != nil {
		o.note("nothing is recorded: " + err.Error())
		return near, func() {}
	}
	if rec.file != nil {
		o.note("recording to " + rec.name)
	}
	tapped := jsonrpc.Tap(near, func(sent bool, frame []byte) {
		dir := trace.ToAgent
		if sent {
			dir = trace.ToClient
		}
		rec.Frame(dir, frame)
	})
	return tapped, func() {
		for _, problem := range rec.close() {
			o.note(problem)
		}
	}
}

// note writes a line to standard error.
func (o *Options) note(text string) {
	fmt.Fprintln(o.App.Err, "acp tap: "+safetext.Line(text, 1000))
}
