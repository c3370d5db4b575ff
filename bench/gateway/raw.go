package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/jsonrpc"
)

// over returns the way to a server with a transport: http or ws.
func over(kind, url string) acp.Transport {
	if kind == "ws" {
		return &acpws.Transport{URL: "ws" + strings.TrimPrefix(url, "http"), RetryFor: -1}
	}
	return &acphttp.Transport{URL: url, RetryFor: -1}
}

// A raw client speaks version 1 without a library around it, so that many of them cost little.
type raw struct {
	stream jsonrpc.Stream
	next   int
}

func dialRaw(ctx context.Context, t acp.Transport) (*raw, error) {
	stream, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	r := &raw{stream: stream}
	if _, err := r.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}, nil); err != nil {
		_ = stream.Close()
		return nil, err
	}
	return r, nil
}

// call sends a request and reads up to its answer. f gets the frames before it.
func (r *raw) call(method string, params any, f func([]byte)) (json.RawMessage, error) {
	id, err := r.send(method, params)
	if err != nil {
		return nil, err
	}
	for {
		frame, err := r.stream.ReadFrame()
		if err != nil {
			return nil, err
		}
		var e struct {
			ID            json.RawMessage
			Method        string
			Result, Error json.RawMessage
		}
		if !isUpdate(frame.Data) && json.Unmarshal(frame.Data, &e) == nil && e.Method == "" && string(e.ID) == strconv.Itoa(id) {
			if len(e.Error) > 0 {
				return nil, fmt.Errorf("%s: %s", method, e.Error)
			}
			return e.Result, nil
		}
		if f != nil {
			f(frame.Data)
		}
	}
}

func (r *raw) send(method string, params any) (int, error) {
	r.next++
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": r.next, "method": method, "params": params})
	if err != nil {
		return 0, err
	}
	return r.next, r.stream.WriteFrame(data)
}

// load loads a session. f gets its history.
func (r *raw) load(session, cwd string, f func([]byte)) error {
	_, err := r.call("session/load", map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}, f)
	return err
}

var updateMark, textMark = []byte(`"session/update"`), []byte(`"text":"`)

func isUpdate(frame []byte) bool { return bytes.Contains(frame, updateMark) }

// said returns the number of an update of the agent, and when it was sent.
func said(frame []byte) (n int, at int64, ok bool) {
	if !isUpdate(frame) {
		return 0, 0, false
	}
	i := bytes.Index(frame, textMark)
	if i < 0 {
		return 0, 0, false
	}
	return saidText(frame[i+len(textMark):])
}

func saidText(text []byte) (n int, at int64, ok bool) {
	i := 0
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		n = n*10 + int(text[i]-'0')
	}
	if i == 0 || i == len(text) || text[i] != ' ' {
		return 0, 0, false
	}
	for i++; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		at = at*10 + int64(text[i]-'0')
	}
	return n, at, true
}

// watch reads updates until the one with the number last has come, and checks that each comes once and in
// order. f gets each.
func (r *raw) watch(last int, f func(n int, at int64)) error {
	for next := 0; ; {
		frame, err := r.stream.ReadFrame()
		if err != nil {
			return err
		}
		n, at, ok := said(frame.Data)
		if !ok {
			continue
		}
		if n != next {
			return fmt.Errorf("update %d came, and %d was next", n, next)
		}
		f(n, at)
		if next++; n == last {
			return nil
		}
	}
}

// A driver is a client that makes a session and sends it prompts.
type driver struct {
	conn    *acp.ClientConn
	session *acp.ClientSession
}

func drive(ctx context.Context, t acp.Transport, cwd string, change func(*acp.Client)) (*driver, error) {
	c := &acp.Client{MaxVersion: 1}
	if change != nil {
		change(c)
	}
	conn, err := c.Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	s, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: cwd})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &driver{conn, s}, nil
}

func (d *driver) prompt(ctx context.Context, w task) error {
	_, err := d.session.PromptRequest(ctx, &acpv2.PromptRequest{Prompt: []acp.ContentBlock{acp.Text(w.text())}}).Wait()
	return err
}

func (d *driver) id() string { return string(d.session.ID()) }

func (d *driver) close() { _ = d.conn.Close() }

// since returns how long ago the agent has sent an update.
func since(at int64) time.Duration { return time.Duration(time.Now().UnixNano() - at) }

// stringOf returns a member of an object.
func stringOf(data []byte, name string) (string, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return "", err
	}
	var s string
	err := json.Unmarshal(all[name], &s)
	return s, err
}
