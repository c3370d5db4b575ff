package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/telemetry"
)

// Operation are the flags for those who operate a server: what it shows of itself.
type Operation struct {
	Metrics             string // where metrics are served; "" means nowhere
	OTLP                string // the collector that gets traces; "" means that of the environment
	LogFormat, LogLevel string
	LiveAgents          int           // how many run at once; 0 is what the settings say
	KeepAgents          bool          // at the end
	KeepRaw             time.Duration // how long all that was said is kept as it was said; 0 is for ever
	KeepSessions        time.Duration // and sessions

	traces telemetry.Traces
}

func (p *Operation) flags(f *pflag.FlagSet) {
	f.StringVar(&p.Metrics, "metrics", "", "serve metrics for Prometheus, /healthz and /readyz at `ADDR` of this machine, such as 127.0.0.1:9842")
	f.StringVar(&p.OTLP, "otlp", "", "send traces to the OpenTelemetry collector at `URL`, such as http://127.0.0.1:4318 (default: $OTEL_EXPORTER_OTLP_ENDPOINT, or nowhere)")
	f.BoolVar(&p.KeepAgents, "keep-agents", false, "leave agents to the acp serve that is started within a minute, also at an interrupt (Ctrl-C)")
	f.IntVar(&p.LiveAgents, "live-agents", 0, "run at most `N` agents at once: for another one, the one is stopped that has been idle for longest (default: the setting serve.live_agents, or 64)")
	f.DurationVar(&p.KeepRaw, "keep-raw", 0, "`TIME` after the last change of a session, keep messages as one and not as the agent has sent them, such as 720h (default: never)")
	f.DurationVar(&p.KeepSessions, "keep-sessions", 0, "delete a session `TIME` after its last change, such as 8760h (default: never)")
	f.StringVar(&p.LogFormat, "log-format", "", "write a log to standard error as `FORMAT`: text or json")
	f.StringVar(&p.LogLevel, "log-level", "", "write a log to standard error, from `LEVEL` on: debug, info, warn or error")
}

// apply adds a flag to the settings, before these are read.
func (p *Operation) apply(flags map[string]any) {
	if p.LiveAgents > 0 && flags != nil {
		flags["serve.live_agents"] = p.LiveAgents
	}
}

// shortest is how long everything is kept in any case.
const shortest = time.Hour

// check refuses flags that make no sense, and makes the logger that they ask for.
func (p *Operation) check(o *Options) (err error) {
	if p.traces, err = telemetry.TracesOf(p.OTLP); err != nil {
		return exitcode.Errorf(exitcode.Usage, "--otlp: %w", err)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} { // no agent needs what lets in there
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	if o.Stateless && (p.Metrics != "" || p.OTLP != "") {
		return exitcode.Errorf(exitcode.Usage, "--metrics and --otlp are about sessions that are kept, and --stateless keeps none")
	}
	if p.KeepRaw != 0 && p.KeepRaw < shortest || p.KeepSessions != 0 && p.KeepSessions < shortest {
		return exitcode.Errorf(exitcode.Usage, "--keep-raw and --keep-sessions must be 1h or longer")
	}
	switch {
	case p.LiveAgents != 0 && o.Stateless:
		return exitcode.Errorf(exitcode.Usage, "--live-agents is about sessions that are kept, and --stateless keeps none")
	case p.LiveAgents < 0:
		return exitcode.Errorf(exitcode.Usage, "--live-agents must be at least 1")
	}
	if o.Stateless && p.KeepAgents {
		return exitcode.Errorf(exitcode.Usage, "--keep-agents is about sessions that are kept, and --stateless keeps none")
	}
	if p.LogFormat == "" && p.LogLevel == "" {
		return nil
	}
	level := slog.LevelInfo
	if p.LogLevel != "" {
		if err := level.UnmarshalText([]byte(p.LogLevel)); err != nil || strings.ContainsAny(p.LogLevel, "+-") {
			return exitcode.Errorf(exitcode.Usage, "--log-level must be debug, info, warn or error")
		}
	}
	options := &slog.HandlerOptions{Level: level}
	switch p.LogFormat {
	case "", "text":
		o.App.Logger = slog.New(slog.NewTextHandler(o.App.Err, options))
	case "json":
		o.App.Logger = slog.New(slog.NewJSONHandler(o.App.Err, options))
	default:
		return exitcode.Errorf(exitcode.Usage, "--log-format must be text or json")
	}
	return nil
}

// observe has the gateway that cfg is for observed.
func (d *durable) observe(ctx context.Context, p *Operation, cfg *gateway.Config) (err error) {
	cfg.Retention = gateway.Retention{Raw: p.KeepRaw, Sessions: p.KeepSessions}
	if p.Metrics == "" && p.traces.Endpoint == "" {
		return nil
	}
	p.traces.Logger = cfg.Logger
	d.telemetry, err = telemetry.New(ctx, telemetry.Config{Agents: cfg.Agents, Version: cfg.Info.Version, Node: d.node, Traces: p.traces})
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	cfg.Observer = d.telemetry
	return nil
}

// show serves what is observed.
func (d *durable) show(ctx context.Context, o *Options) (err error) {
	if o.Operation.Metrics == "" {
		return nil
	}
	if d.metrics, err = d.telemetry.Serve(ctx, o.Operation.Metrics, d.Gateway, d.log.Size); err != nil {
		code := exitcode.Failed
		if errors.Is(err, telemetry.ErrNotLocal) {
			code = exitcode.Usage
		}
		return exitcode.Errorf(code, "--metrics %s: %w", o.Operation.Metrics, err)
	}
	o.note("metrics are at " + d.metrics.URL())
	return nil
}

// hide ends what observe and show have begun.
func (d *durable) hide() error {
	var errs []error
	if d.metrics != nil {
		errs = append(errs, d.metrics.Close())
	}
	if d.telemetry != nil {
		if err := d.telemetry.Close(); err != nil { // a collector that is down must not be why a server fails
			d.logger.Warn("traces are lost", "error", err)
		}
	}
	return errors.Join(errs...)
}

// traceEnv is what the environment of an agent says of the trace in which it is started.
func traceEnv(ctx context.Context) map[string]string {
	t, ok := acp.TraceFrom(ctx)
	if !ok || t.Parent == "" {
		return nil
	}
	env := map[string]string{"TRACEPARENT": t.Parent}
	if t.State != "" {
		env["TRACESTATE"] = t.State
	}
	return env
}

// said shows a line that an agent has written to standard error. It may be content, so no log has it.
func (o *Options) said(agent, line string) {
	if o.Operation.LogFormat != "json" {
		o.note(agent + ": " + line)
	}
}

// withTrace returns an environment, where nil is that of this process, with what traceEnv says.
func withTrace(ctx context.Context, env []string) []string {
	trace := traceEnv(ctx)
	if len(trace) == 0 {
		return env
	}
	if env == nil {
		env = os.Environ()
	}
	env = slices.Clone(env)
	for k, v := range trace {
		env = append(env, k+"="+v)
	}
	return env
}
