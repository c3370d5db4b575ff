package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
)

// A Traces says where traces go: to a collector of OpenTelemetry that speaks OTLP over HTTP.
type Traces struct {
	// Endpoint is the URL that gets traces: that of the collector and /v1/traces.
	Endpoint string
	// Headers are sent to it.
	Headers map[string]string
	// Logger gets what cannot be sent.
	Logger *slog.Logger
}

// TracesOf returns where traces go by the variables of OpenTelemetry; a base URL, unless it is "", is used instead of
// that of the variables.
func TracesOf(base string) (t Traces, err error) {
	t.Endpoint = os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	if base == "" && t.Endpoint == "" {
		base = os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	if base != "" {
		t.Endpoint = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if t.Endpoint == "" {
		return t, nil
	}
	if u, err := url.Parse(t.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return t, errors.New("the URL of the collector must begin with http:// or https://") // it may have a password
	}
	t.Headers = map[string]string{}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(os.Getenv(name), ",") {
			key, value, ok := strings.Cut(pair, "=")
			if !ok {
				continue
			}
			if value, err = url.PathUnescape(strings.TrimSpace(value)); err != nil {
				return t, fmt.Errorf("%s: the value of %s is malformed", name, strings.TrimSpace(key))
			}
			t.Headers[strings.TrimSpace(key)] = value
		}
	}
	return t, nil
}

// traces makes spans of what the gateway does, with the names of the semantic conventions for generative AI. Those are
// in development: all of them are in this file.
type traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// closeTime bounds how long it takes to send what is left.
const closeTime = 5 * time.Second

func newTraces(ctx context.Context, cfg Config) (*traces, error) {
	res, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "acp"), attribute.String("service.version", cfg.Version), attribute.String("service.instance.id", cfg.Node),
	), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	if cfg.Traces.Logger != nil { // one for the process
		logger := cfg.Traces.Logger
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("traces are lost", "error", err) }))
	}
	p := sdk.NewTracerProvider(sdk.WithResource(res), sdk.WithBatcher(newExporter(cfg.Traces)), sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())))
	return &traces{provider: p, tracer: p.Tracer("github.com/goacp/acp")}, nil
}

// names of what is nobody's convention.
const (
	attrOutcome = "acp.outcome"
	attrRecords = "acp.records"
	attrBytes   = "acp.bytes"
)

// begin begins a span. What nobody has caused by a request, such as an append between turns, has none.
func (t *traces) begin(ctx context.Context, s *gateway.Span) (context.Context, func(string)) {
	from, ok := acp.TraceFrom(ctx)
	if !ok && s.Kind != gateway.SpanTurn && s.Kind != gateway.SpanReplay {
		return ctx, func(string) {}
	}
	attrs := []attribute.KeyValue{attribute.String("gen_ai.conversation.id", s.Session)}
	kind := trace.SpanKindInternal
	name := ""
	switch s.Kind {
	case gateway.SpanTurn:
		name, kind = "invoke_agent "+s.Agent, trace.SpanKindClient
		attrs = append(attrs, attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", s.Agent))
	case gateway.SpanTool:
		name = "execute_tool " + s.Tool
		attrs = append(attrs, attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", s.Tool))
	case gateway.SpanPermission:
		name = "acp.permission.wait"
	case gateway.SpanAppend:
		name = "acp.append"
		attrs = append(attrs, attribute.Int(attrRecords, s.Records), attribute.Int(attrBytes, s.Bytes))
	case gateway.SpanReplay:
		name = "acp.replay"
	case gateway.SpanStart:
		name = "acp.agent.start"
		attrs = append(attrs, attribute.String("gen_ai.agent.name", s.Agent))
	}
	w3c := propagation.TraceContext{}
	parent := w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": from.Parent, "tracestate": from.State})
	parent, span := t.tracer.Start(parent, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	carrier := propagation.MapCarrier{}
	w3c.Inject(parent, carrier)
	inner := acp.WithTrace(ctx, acp.Trace{Parent: carrier["traceparent"], State: carrier["tracestate"]})
	return inner, func(outcome string) {
		span.SetAttributes(attribute.String(attrOutcome, outcome))
		if outcome == "error" || outcome == "lost" || outcome == "failed" {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

func (t *traces) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
