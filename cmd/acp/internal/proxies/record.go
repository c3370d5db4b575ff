package proxies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/record/file"
	"github.com/goacp/acp/cmd/acp/internal/record/hop"
	"github.com/goacp/acp/trace"
)

// record is the proxy that records what passes.
func record() Kind {
	return Kind{
		Name:  "record",
		Short: "Record what passes",
		Long: `Record what passes between the client and the agent to FILE, which acp trace reads. What
proxies next to the client change is recorded as they leave it; what those next to the
agent change, as the client sends it. Secrets are replaced, as acp tap does. If FILE is a
recording already, the new one is appended to it. If another session is being recorded to it,
the process id and perhaps a number are added to the name, and a message says so. Nothing ever
waits for the recording: if something cannot be written, as on a full disk, it is missing, and
a message at the end says so.`,
		Example: "record -o session.acptrace",
		Flags: func(f *pflag.FlagSet) func(Env) (func() (*Running, error), error) {
			output := f.StringP("output", "o", "", "record to `FILE`")
			open := f.Bool("no-redact", false, "record secrets as they are")
			return func(env Env) (func() (*Running, error), error) {
				if *output == "" || *output == "-" {
					return nil, errors.New("--output FILE is missing: standard output carries the traffic")
				}
				name, redact := env.file(*output), !*open
				return func() (*Running, error) { return startRecord(env, name, redact) }, nil
			}
		},
	}
}

// Record opens a recording that is appended to a file. close says what is missing in it.
func Record(name, tool string, redact bool, tee func(*trace.Record)) (rec *trace.Recorder, end func() error, err error) {
	f, err := file.OpenLocked(name)
	if err != nil {
		return nil, nil, err
	}
	return recordTo(f, tool, redact, tee)
}

// recordTo is [Record] to a file that is open, and closes it.
func recordTo(f *os.File, tool string, redact bool, tee func(*trace.Record)) (rec *trace.Recorder, end func() error, err error) {
	name := f.Name()
	o := trace.RecorderOptions{Header: trace.Header{Tool: tool}, Tee: tee}
	if redact {
		o.Redactor, o.Header.Redacted = new(trace.Redactor), true
	}
	o.Header.Started = time.Now()
	w, err := trace.Append(f, o.Header)
	if errors.Is(err, trace.ErrNotTrace) || errors.Is(err, trace.ErrVersion) {
		return nil, nil, errors.Join(fmt.Errorf("cannot record to %s: %w", name, err), f.Close())
	}
	// The recorder tries again what could not be written.
	rec = trace.NewRecorderTo(w, o.Header.Started, o)
	return rec, func() error {
		err := errors.Join(rec.Close(), f.Close())
		lost := rec.Lost()
		switch {
		case err != nil:
			return fmt.Errorf("the recording %s is incomplete: %w", name, err)
		case lost.Records > 0:
			return fmt.Errorf("the recording %s is incomplete: %d records of %d bytes are missing", name, lost.Records, lost.Bytes)
		}
		return nil
	}, nil
}

func startRecord(env Env, name string, redact bool) (*Running, error) {
	f, err := file.OpenFree(name)
	if err != nil {
		return nil, err
	}
	if f.Name() != name {
		env.note("record", "another session is being recorded to "+name+"; recording to "+f.Name())
	}
	rec, end, err := recordTo(f, env.Tool, redact, nil)
	if err != nil {
		return nil, err
	}
	var ids atomic.Int64
	to := func(d acp.ProxyDirection) (there, back trace.Direction) {
		if d == acp.ToAgent {
			return trace.ToAgent, trace.ToClient
		}
		return trace.ToClient, trace.ToAgent
	}
	p := &acp.Proxy{
		Name: "record",
		Initialize: func(ctx context.Context, in *acp.ProxyInit) error {
			id := ids.Add(1)
			rec.Frame(trace.ToAgent, hop.Request(id, "initialize", initRequest(in)))
			err := in.Next(ctx)
			rec.Frame(trace.ToClient, hop.Answer(id, initResult(in), err))
			return err
		},
		Request: func(ctx context.Context, m *acp.ProxyMessage, next func(context.Context) error) error {
			id := ids.Add(1)
			there, back := to(m.Direction)
			rec.Frame(there, hop.Request(id, m.Method, m.Params))
			err := next(ctx)
			rec.Frame(back, hop.Answer(id, m.Result, err))
			return err
		},
		Notify: func(ctx context.Context, m *acp.ProxyMessage, next func(context.Context) error) error {
			there, _ := to(m.Direction)
			rec.Frame(there, hop.Request(0, m.Method, m.Params))
			return next(ctx)
		},
	}
	return &Running{Proxy: p, close: func() error {
		err := end()
		if err != nil {
			env.note("record", err.Error())
		}
		return nil // the conversation is none the worse for it
	}}, nil
}
