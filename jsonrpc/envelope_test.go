package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

const (
	parseError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`
	invalidReq = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`
	batchError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: JSON-RPC batches are not supported"}}`
	strictErr  = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: ids must be strings or integers"}}`
)

func notFound(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"\"Method not found\": ` + method + `","data":{"method":"` + method + `"}}}`
}

func badParams(id, path, reason string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32602,"message":"Invalid params","data":{"path":"` + path + `","reason":"` + reason + `"}}}`
}

// echoMux answers _echo with its params as they came and session/prompt with
// the decoded text.
func echoMux() *Mux {
	mux := new(Mux)
	Method[json.RawMessage, json.RawMessage]{"_echo"}.Handle(mux, func(_ context.Context, p *json.RawMessage) (*json.RawMessage, error) {
		return p, nil
	})
	prompt.Handle(mux, func(_ context.Context, n *note) (*reply, error) { return &reply{n.Session + ":" + n.Text}, nil })
	Method[struct{ A int }, struct{}]{"_plain"}.Handle(mux, func(context.Context, *struct{ A int }) (*struct{}, error) { return nil, nil })
	update.Handle(mux, func(context.Context, *note) error { return nil })
	return mux
}

// TestFrames holds what every malformed or odd frame is answered with, and that
// the connection lives on.
func TestFrames(t *testing.T) {
	ok := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{"x":1}}` }
	echo := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"_echo","params":{"x":1}}` }
	for _, tt := range []struct {
		name, in string
		want     []string
		events   []EventKind
	}{
		// S1
		{"blank lines", "\n   \n\t\n\r\n", nil, nil},
		{"crlf", echo("1") + "\r\n", []string{ok("1")}, nil},
		{"two in one write", echo("1") + "\n" + notFoundReq("2") + "\n", nil, nil}, // order is checked below
		// S2
		{"invalid utf-8 in a method", "{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"x\xff\xfe\"}\n", []string{notFound("12", "x\ufffd\ufffd")}, nil},
		{"invalid utf-8 in an id", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"_echo\",\"params\":{\"x\":1}}\n", []string{ok("\"\ufffd\"")}, nil},
		// S5
		{"oops", "{oops\n", []string{parseError}, []EventKind{EventInvalidFrame}},
		{"truncated", `{"jsonrpc":"2.0","id":1,"method":"_echo"` + "\n", []string{parseError}, []EventKind{EventInvalidFrame}},
		{"trailing bytes", echo("1") + "x\n", []string{parseError}, []EventKind{EventInvalidFrame}},
		{"two values", echo("1") + echo("2") + "\n", []string{parseError}, []EventKind{EventInvalidFrame}},
		{"control byte", "{\"jsonrpc\":\"2.0\",\"id\":\"\x01\",\"method\":\"x\"}\n", []string{parseError}, []EventKind{EventInvalidFrame}},
		{"broken array", "[INFO] starting\n", []string{parseError}, []EventKind{EventInvalidFrame}},
		{"broken params of a known method", `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s",}}` + "\n", []string{parseError}, []EventKind{EventInvalidFrame}},
		// design §5: noise
		{"log line", "Listening on stdio...\ntrue story\n\"quoted\" words\n", nil, []EventKind{EventNoise, EventNoise, EventNoise}},
		// S6
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"_echo"},{"jsonrpc":"2.0","id":2,"method":"_echo"}]` + "\n", []string{batchError}, []EventKind{EventInvalidFrame}},
		{"empty batch", "[]\n", []string{batchError}, []EventKind{EventInvalidFrame}},
		// S7
		{"number", "17\n", []string{strings.Replace(invalidReq, `t"}`, `t","data":17}`, 1)}, []EventKind{EventInvalidFrame}},
		{"string", "\"s\"\n", []string{strings.Replace(invalidReq, `t"}`, `t","data":"s"}`, 1)}, []EventKind{EventInvalidFrame}},
		{"null", "null\n", []string{strings.Replace(invalidReq, `t"}`, `t","data":null}`, 1)}, []EventKind{EventInvalidFrame}},
		{"true", "true\n", []string{strings.Replace(invalidReq, `t"}`, `t","data":true}`, 1)}, []EventKind{EventInvalidFrame}},
		{"long string", `"` + strings.Repeat("x", 300) + "\"\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		// S8
		{"empty object", "{}\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"empty envelope", `{"jsonrpc":"2.0"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"only params", `{"jsonrpc":"2.0","params":{}}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"no jsonrpc", `{"id":5,"method":"_echo"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":5,"method":"_echo"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"jsonrpc number", `{"jsonrpc":2.0,"id":5,"method":"_echo"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"notification without jsonrpc", `{"method":"session/update"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"number as method", `{"jsonrpc":"2.0","id":6,"method":5}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"_echo"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"array id", `{"jsonrpc":"2.0","id":[1],"method":"_echo"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"boolean id", `{"jsonrpc":"2.0","id":true,"method":"_echo"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"case of keys", `{"jsonrpc":"2.0","id":1,"Method":"_echo","METHOD":"_echo","method":5}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"duplicate jsonrpc", `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"_echo"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"duplicate id", `{"jsonrpc":"2.0","id":1,"id":2,"method":"_echo"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"duplicate method", `{"jsonrpc":"2.0","id":1,"method":"_echo","method":"session/update"}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		{"duplicate params", `{"jsonrpc":"2.0","id":1,"method":"_echo","params":{},"params":{}}` + "\n", []string{invalidReq}, []EventKind{EventInvalidFrame}},
		// S9, S32, S33: response-shaped
		{"response to unknown id", `{"jsonrpc":"2.0","id":4242,"result":{}}` + "\n", nil, []EventKind{EventUnknownResponse}},
		{"response to string id", `{"jsonrpc":"2.0","id":"0","result":{}}` + "\n", nil, []EventKind{EventUnknownResponse}},
		{"response without id", `{"jsonrpc":"2.0","result":1}` + "\n", nil, []EventKind{EventUnknownResponse}},
		{"response with both", `{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}` + "\n", nil, []EventKind{EventUnknownResponse}},
		{"response with neither", `{"jsonrpc":"2.0","id":4}` + "\n", nil, []EventKind{EventUnknownResponse}},
		{"response with a string error", `{"jsonrpc":"2.0","id":3,"error":"nope"}` + "\n", nil, []EventKind{EventUnknownResponse}},
		{"response without jsonrpc", `{"id":5,"result":1}` + "\n", nil, []EventKind{EventUnknownResponse}},
		{"response with object id", `{"jsonrpc":"2.0","id":{},"result":1}` + "\n", nil, []EventKind{EventUnknownResponse}},
		{"response with duplicate id", `{"jsonrpc":"2.0","id":0,"id":0,"result":1}` + "\n", nil, []EventKind{EventUnknownResponse}},
		{"error with id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}` + "\n", nil, []EventKind{EventUnknownResponse}}, // S35
		// S10
		{"id 0", echo("0") + "\n", []string{ok("0")}, nil},
		{"id -1", echo("-1") + "\n", []string{ok("-1")}, nil},
		{"id 2^53-1", echo("9007199254740991") + "\n", []string{ok("9007199254740991")}, nil},
		{"id beyond int64", echo("123456789012345678901234567890") + "\n", []string{ok("123456789012345678901234567890")}, nil},
		{"id 1.50", echo("1.50") + "\n", []string{ok("1.50")}, nil},
		{"id 1e2", echo("1e2") + "\n", []string{ok("1e2")}, nil},
		{"id string", echo(`"0"`) + "\n", []string{ok(`"0"`)}, nil},
		{"id empty string", echo(`""`) + "\n", []string{ok(`""`)}, nil},
		{"id escaped", echo(`"\u0061\/"`) + "\n", []string{ok(`"\u0061\/"`)}, nil},
		{"id null", echo("null") + "\n", []string{ok("null")}, nil},
		// S13
		{"unknown members", `{"extra":[1,{"id":9}],"jsonrpc":"2.0","id":31,"method":"_echo","params":{"x":1},"_":1}` + "\n", []string{ok("31")}, nil},
		{"params first", `{"params":{"x":1},"method":"_echo","id":1,"jsonrpc":"2.0"}` + "\n", []string{ok("1")}, nil},
		{"id last", `{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"a","text":"b"},"id":1}` + "\n", []string{`{"jsonrpc":"2.0","id":1,"result":{"text":"a:b"}}`}, nil},
		{"escaped keys", `{"jsonrpc":"2\u002e0","\u0069d":1,"method":"\u005fecho","params":{"x":1}}` + "\n", []string{ok("1")}, nil},
		{"a request with a result", `{"jsonrpc":"2.0","id":1,"method":"_echo","params":{"x":1},"result":5}` + "\n", []string{ok("1")}, nil},
		// S14
		{"no params, raw", `{"jsonrpc":"2.0","id":1,"method":"_echo"}` + "\n", []string{`{"jsonrpc":"2.0","id":1,"result":null}`}, nil},
		{"no params, plain", `{"jsonrpc":"2.0","id":1,"method":"_plain"}` + "\n", []string{`{"jsonrpc":"2.0","id":1,"result":{}}`}, nil},
		{"null params, plain", `{"jsonrpc":"2.0","id":1,"method":"_plain","params":null}` + "\n", []string{`{"jsonrpc":"2.0","id":1,"result":{}}`}, nil},
		{"no params, required member", `{"jsonrpc":"2.0","id":1,"method":"session/prompt"}` + "\n", []string{badParams("1", "params.sessionId", "missing")}, []EventKind{EventMalformedRequest}},
		{"null params, required member", `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":null}` + "\n", []string{badParams("1", "params.sessionId", "missing")}, []EventKind{EventMalformedRequest}},
		{"array params", `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":[1]}` + "\n", []string{badParams("1", "params", "expected an object")}, []EventKind{EventMalformedRequest}},
		{"string params", `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":"x"}` + "\n", []string{badParams("1", "params", "expected an object")}, []EventKind{EventMalformedRequest}},
		{"string params before the method", `{"params":"secret","jsonrpc":"2.0","id":1,"method":"session/prompt"}` + "\n", []string{badParams("1", "params", "expected an object")}, []EventKind{EventMalformedRequest}},
		{"wrong type", `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":5}}` + "\n", []string{badParams("1", "params.sessionId", "expected a string")}, []EventKind{EventMalformedRequest}},
		{"wrong type, reflected", `{"jsonrpc":"2.0","id":1,"method":"_plain","params":{"A":"secret"}}` + "\n", []string{badParams("1", "params", "member A: expected a Go int")}, []EventKind{EventMalformedRequest}},
		// S20, S21, S36
		{"unknown request", notFoundReq("7") + "\n", []string{notFound("7", "session/bogus")}, nil},
		{"notification as a request", `{"jsonrpc":"2.0","id":7,"method":"session/update","params":{"sessionId":"s"}}` + "\n", []string{notFound("7", "session/update")}, nil},
		{"request as a notification", `{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"s"}}` + "\n", nil, []EventKind{EventUnknownNotification}},
		{"unknown notifications", `{"jsonrpc":"2.0","method":"raw/nope","params":{}}` + "\n" + `{"jsonrpc":"2.0","method":"session/bogus"}` + "\n", nil, []EventKind{EventUnknownNotification, EventUnknownNotification}},
		{"malformed notifications", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":5}}` + "\n" + `{"jsonrpc":"2.0","method":"session/update"}` + "\n", nil, []EventKind{EventMalformedNotification, EventMalformedNotification}},
		{"cancel as a request", `{"jsonrpc":"2.0","id":1,"method":"$/cancel_request","params":{"requestId":1}}` + "\n", []string{notFound("1", "$/cancel_request")}, nil},
		{"malformed cancels", cancelReq("") + cancelReq(`,"params":null`) + cancelReq(`,"params":{}`) + cancelReq(`,"params":{"requestId":{}}`) + cancelReq(`,"params":{"requestId":99999}`) + cancelReq(`,"params":[1]`), nil, nil},
		{"proto keys", `{"jsonrpc":"2.0","id":14,"method":"_echo","params":{"x":1},"__proto__":{"id":1}}` + "\n", []string{ok("14")}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ev events
				p := newRawPeer(Config{Mux: echoMux(), Settings: Settings{Diagnose: ev.add}})
				p.write(tt.in)
				got := p.take()
				if tt.name != "two in one write" {
					if diff := cmp.Diff(tt.want, got); diff != "" {
						t.Error(diff)
					}
				} else if len(got) != 2 {
					t.Error(got)
				}
				if diff := cmp.Diff(tt.events, ev.kinds()); diff != "" {
					t.Error(diff)
				}
				p.write(echo("99") + "\n")
				if diff := cmp.Diff([]string{ok("99")}, p.take()); diff != "" {
					t.Errorf("the connection did not live on: %s", diff)
				}
				p.close()
				if err := p.conn.Wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func notFoundReq(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"session/bogus"}`
}

func cancelReq(params string) string {
	return `{"jsonrpc":"2.0","method":"$/cancel_request"` + params + "}\n"
}

// TestStrictIDs: S11.
func TestStrictIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := echoMux()
		mux.StrictIDs = true
		p := newRawPeer(Config{Mux: mux})
		defer p.close()
		for _, id := range []string{"null", "1.5", "1e-3"} {
			p.write(`{"jsonrpc":"2.0","id":` + id + `,"method":"session/bogus"}` + "\n")
			if diff := cmp.Diff([]string{strictErr}, p.take()); diff != "" {
				t.Error(id, diff)
			}
		}
		for _, id := range []string{"1", "1.0", `"a"`} {
			p.write(notFoundReq(id) + "\n")
			if diff := cmp.Diff([]string{notFound(id, "session/bogus")}, p.take()); diff != "" {
				t.Error(id, diff)
			}
		}
		p.conn.SetMux(echoMux())
		p.write(notFoundReq("null") + "\n")
		if diff := cmp.Diff([]string{notFound("null", "session/bogus")}, p.take()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestDuplicateIDs: §1 "Duplicate ids", S24. The first request is unaffected.
func TestDuplicateIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		release := make(chan struct{})
		prompt.Handle(&mux, func(context.Context, *note) (*reply, error) {
			<-release
			return &reply{"first"}, nil
		})
		p := newRawPeer(Config{Mux: &mux})
		defer p.close()
		req := func(id string) string {
			return `{"jsonrpc":"2.0","id":` + id + `,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n"
		}
		dup := func(id string) string {
			return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":"Invalid request: id is already in flight"}}`
		}
		p.write(req(`"a"`) + req(`"\u0061"`) + req("1") + req("1.0"))
		if diff := cmp.Diff([]string{dup(`"\u0061"`), dup("1.0")}, p.take()); diff != "" {
			t.Error(diff)
		}
		close(release)
		got := p.take()
		if len(got) != 2 || !strings.Contains(got[0]+got[1], `"id":"a","result":{"text":"first"}`) {
			t.Error(got)
		}
		p.write(req(`"a"`)) // free again
		if diff := cmp.Diff([]string{`{"jsonrpc":"2.0","id":"a","result":{"text":"first"}}`}, p.take()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestResponses: S32, S33. What comes back for call 0 and what the call returns.
func TestResponses(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		text     string
		code     int   // of an *Error
		is       error // a local error
	}{
		{name: "success", in: `{"jsonrpc":"2.0","id":0,"result":{"text":"x"}}`, text: "x"},
		{name: "result first", in: `{"result":{"text":"x"},"id":0,"jsonrpc":"2.0"}`, text: "x"},
		{name: "null result", in: `{"jsonrpc":"2.0","id":0,"result":null}`},
		{name: "error", in: `{"jsonrpc":"2.0","id":0,"error":{"code":400,"message":"m","data":{"a":1}}}`, code: 400},
		{name: "error first", in: `{"error":{"message":"m","code":-32000},"jsonrpc":"2.0","id":0}`, code: -32000},
		{name: "both", in: `{"jsonrpc":"2.0","id":0,"result":{},"error":{"code":1,"message":"m"}}`, is: ErrInvalidResponse},
		{name: "null error beside a result", in: `{"jsonrpc":"2.0","id":0,"result":{"text":"x"},"error":null}`, text: "x"},
		{name: "null error before a result", in: `{"jsonrpc":"2.0","id":0,"error":null,"result":{"text":"x"}}`, text: "x"},
		{name: "null error beside a null result", in: `{"jsonrpc":"2.0","id":0,"result":null,"error":null}`},
		{name: "null error beside an undecodable result", in: `{"jsonrpc":"2.0","id":0,"error":null,"result":{"text":5}}`, is: ErrInvalidResponse},
		{name: "null result beside an error", in: `{"jsonrpc":"2.0","id":0,"result":null,"error":{"code":1,"message":"m"}}`, code: 1},
		{name: "null result behind an error", in: `{"error":{"code":1,"message":"m"},"result":null,"jsonrpc":"2.0","id":0}`, code: 1},
		{name: "both, error first", in: `{"error":{"code":1,"message":"m"},"result":{},"jsonrpc":"2.0","id":0}`, is: ErrInvalidResponse},
		{name: "null error twice", in: `{"jsonrpc":"2.0","id":0,"result":{},"error":null,"error":null}`, is: ErrInvalidResponse},
		{name: "neither", in: `{"jsonrpc":"2.0","id":0}`, is: ErrInvalidResponse},
		{name: "no jsonrpc", in: `{"id":0,"result":{}}`, is: ErrInvalidResponse},
		{name: "wrong jsonrpc", in: `{"jsonrpc":"1.0","id":0,"result":{}}`, is: ErrInvalidResponse},
		{name: "fractional code", in: `{"jsonrpc":"2.0","id":0,"error":{"code":1.5,"message":"m"}}`, is: ErrInvalidResponse},
		{name: "string code", in: `{"jsonrpc":"2.0","id":0,"error":{"code":"1","message":"m"}}`, is: ErrInvalidResponse},
		{name: "no code", in: `{"jsonrpc":"2.0","id":0,"error":{"message":"m"}}`, is: ErrInvalidResponse},
		{name: "no message", in: `{"jsonrpc":"2.0","id":0,"error":{"code":1}}`, is: ErrInvalidResponse},
		{name: "number as message", in: `{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":2}}`, is: ErrInvalidResponse},
		{name: "null error", in: `{"jsonrpc":"2.0","id":0,"error":null}`, is: ErrInvalidResponse},
		{name: "duplicate result", in: `{"jsonrpc":"2.0","id":0,"result":{},"result":{}}`, is: ErrInvalidResponse},
		{name: "undecodable result", in: `{"jsonrpc":"2.0","id":0,"result":{"text":5}}`, is: ErrInvalidResponse},
		{name: "undecodable result first", in: `{"result":[],"jsonrpc":"2.0","id":0}`, is: ErrInvalidResponse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newRawPeer(Config{})
				defer p.close()
				done := make(chan struct{})
				var r *reply
				var err error
				go func() {
					r, err = prompt.Call(bg, p.conn, &note{Session: "s"})
					close(done)
				}()
				p.take()
				// A string id is not ours.
				p.write(`{"jsonrpc":"2.0","id":"0","result":{"text":"no"}}` + "\n" + `{"jsonrpc":"2.0","id":0e0,"result":{"text":"no"}}` + "\n")
				p.write(tt.in + "\n" + tt.in + "\n")
				<-done
				var we *Error
				switch {
				case tt.is != nil:
					if !errors.Is(err, tt.is) || errors.As(err, &we) || !strings.Contains(err.Error(), "session/prompt") {
						t.Errorf("err = %v", err)
					}
				case tt.code != 0:
					if !errors.As(err, &we) || we.Code != tt.code || we.Message != "m" || !errors.Is(err, &Error{Code: tt.code}) {
						t.Errorf("err = %v", err)
					}
				case err != nil || r.Text != tt.text:
					t.Error(r, err)
				}
				if got := p.take(); got != nil {
					t.Error("a response was answered", got)
				}
			})
		})
	}
}

// TestResultPath: the error of a result that cannot be decoded names the field
// and not the value.
func TestResultPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(Config{})
		defer p.close()
		errs := make(chan error)
		go func() {
			_, err := prompt.Call(bg, p.conn, &note{Session: "s"})
			errs <- err
		}()
		p.take()
		p.write(`{"jsonrpc":"2.0","id":0,"result":{"text":{"secret":1}}}` + "\n")
		err := <-errs
		if err == nil || !strings.HasSuffix(err.Error(), "result.text: expected a string") {
			t.Error(err)
		}
	})
}
