package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// An exporter sends spans to a collector, as OTLP over HTTP in JSON. That of OpenTelemetry itself has all of gRPC in
// it, which is 7 MB of program for one request.
type exporter struct {
	to     Traces
	client *http.Client
}

const (
	exportTries = 4
	exportTime  = 10 * time.Second // of one request
	maxAnswer   = 64 << 10         // of the collector, in bytes
)

func newExporter(to Traces) *exporter {
	// It follows no redirects: they would get the headers.
	return &exporter{to: to, client: &http.Client{
		Timeout: exportTime, Transport: http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ExportSpans implements [sdk.SpanExporter].
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	body, err := json.Marshal(requestOf(spans))
	if err != nil {
		return err
	}
	_, err = backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, e.send(ctx, body) },
		backoff.WithMaxTries(exportTries))
	return err
}

// send sends a request once.
func (e *exporter) send(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.to.Endpoint, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	for k, v := range e.to.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
			return backoff.RetryAfter(s)
		}
		return fmt.Errorf("the collector answers %s", res.Status)
	}
	return backoff.Permanent(fmt.Errorf("the collector answers %s", res.Status))
}

// Shutdown implements [sdk.SpanExporter].
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

// What is sent, with the names of opentelemetry.proto.collector.trace.v1 in JSON: ids in hexadecimal, 64 bit numbers
// as strings.
type (
	otlpRequest struct {
		ResourceSpans []otlpResource `json:"resourceSpans"`
	}
	otlpResource struct {
		Resource struct {
			Attributes []otlpAttribute `json:"attributes,omitempty"`
		} `json:"resource"`
		ScopeSpans []otlpScope `json:"scopeSpans"`
	}
	otlpScope struct {
		Scope struct {
			Name string `json:"name"`
		} `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpSpan struct {
		TraceID      string          `json:"traceId"`
		SpanID       string          `json:"spanId"`
		TraceState   string          `json:"traceState,omitempty"`
		ParentSpanID string          `json:"parentSpanId,omitempty"`
		Flags        uint32          `json:"flags"`
		Name         string          `json:"name"`
		Kind         int             `json:"kind"`
		Start        string          `json:"startTimeUnixNano"`
		End          string          `json:"endTimeUnixNano"`
		Attributes   []otlpAttribute `json:"attributes,omitempty"`
		Status       otlpStatus      `json:"status"`
	}
	otlpStatus struct {
		Code int `json:"code,omitempty"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String *string  `json:"stringValue,omitempty"`
		Int    *string  `json:"intValue,omitempty"`
		Bool   *bool    `json:"boolValue,omitempty"`
		Double *float64 `json:"doubleValue,omitempty"`
	}
)

// requestOf returns the request for spans, which are of one provider and one tracer.
func requestOf(spans []sdk.ReadOnlySpan) otlpRequest {
	var r otlpResource
	r.Resource.Attributes = attributesOf(spans[0].Resource().Attributes())
	var scope otlpScope
	scope.Scope.Name = spans[0].InstrumentationScope().Name
	for _, s := range spans {
		c := s.SpanContext()
		span := otlpSpan{
			TraceID: c.TraceID().String(), SpanID: c.SpanID().String(), TraceState: c.TraceState().String(), Flags: uint32(c.TraceFlags()),
			Name: s.Name(), Kind: int(s.SpanKind()), // the numbers are the same
			Start: nanos(s.StartTime()), End: nanos(s.EndTime()), Attributes: attributesOf(s.Attributes()),
		}
		if p := s.Parent(); p.HasSpanID() {
			span.ParentSpanID = p.SpanID().String()
		}
		switch s.Status().Code.String() { // whose numbers are not
		case "Ok":
			span.Status.Code = 1
		case "Error":
			span.Status.Code = 2
		}
		scope.Spans = append(scope.Spans, span)
	}
	r.ScopeSpans = []otlpScope{scope}
	return otlpRequest{ResourceSpans: []otlpResource{r}}
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributesOf(list []attribute.KeyValue) (all []otlpAttribute) {
	for _, kv := range list {
		a := otlpAttribute{Key: string(kv.Key)}
		switch kv.Value.Type() {
		case attribute.INT64:
			a.Value.Int = new(strconv.FormatInt(kv.Value.AsInt64(), 10))
		case attribute.BOOL:
			a.Value.Bool = new(kv.Value.AsBool())
		case attribute.FLOAT64:
			a.Value.Double = new(kv.Value.AsFloat64())
		default:
			a.Value.String = new(kv.Value.String())
		}
		all = append(all, a)
	}
	return all
}
