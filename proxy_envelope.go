package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// proxyOpened is the params of a notification proxy/successor, without what ends at this
// hop.
type proxyOpened struct {
	d      wire.Decoder
	method string
	params json.RawMessage // of the text that was opened; nil for none
	ok     bool
}

// open reads an envelope, which is well-formed JSON. Most have the same method as the one
// before.
func (o *proxyOpened) open(text []byte) {
	o.params, o.ok = nil, false
	var has, twice bool
	d := &o.d
	d.Reset(text, false)
	if d.Peek() != '{' {
		o.method = ""
		return
	}
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		switch string(k) {
		case "method":
			if d.Peek() != '"' {
				d.Skip()
				continue
			}
			twice = twice || has
			has = true
			if name := d.Bytes(); string(name) != o.method {
				o.method = string(name)
			}
		case "params":
			twice = twice || o.params != nil
			o.params = d.Raw()
		default:
			d.Skip()
		}
	}
	if o.ok = has && !twice && d.Finish() == nil; !has {
		o.method = ""
	}
	d.Reset(nil, false)
}

// unwrap forwards a notification that has come in an envelope. Other params are reported and
// ignored.
func (e *proxyEnd) unwrap(ctx context.Context, lane string, text []byte, old bool) error {
	req := jsonrpc.RequestFrom(ctx)
	if req != nil { // in its lane
		var o proxyOpened
		if o.open(text); !o.ok {
			return invalidParams("method", "missing")
		}
		e.speaks(old)
		return e.notified(ctx, e.wrapped, req, o.method, &o.params)
	}
	o := &e.opened // the lane has been named with it
	if !o.ok {
		return invalidParams("method", "missing")
	}
	e.speaks(old)
	m := proxied{method: o.method, params: &o.params, session: sessionOfLane(lane)}
	m.checked = bytes.IndexByte(o.params, '\n') < 0 && utf8.Valid(o.params)
	return e.updatesWrapped.notify(ctx, m)
}
