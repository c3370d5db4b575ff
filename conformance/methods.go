package conformance

import (
	"encoding/json"
	"sync"

	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// A method is one that a version of the protocol knows.
type method struct {
	name         string
	request      *codec // what it carries as a request, nil if it is none
	notification *codec
	// Who handles the request and the notification. Those of proxies are handled
	// by either side, and so is what belongs to the protocol itself.
	asks, tells party
}

// A party is who handles a method.
type party uint8

const (
	nobody party = iota
	agents
	clients
	either
)

// takes reports whether the side handles it.
func (p party) takes(side int) bool {
	return p == either || p == agents && side == theAgent || p == clients && side == theClient
}

// A codec reads what a method carries. Its functions are nil where anything may
// be carried.
type codec struct {
	params, result func(*wire.Decoder) any
}

// reader returns what reads a T, or nil if that is raw JSON.
func reader[T any]() func(*wire.Decoder) any {
	if _, raw := any(new(T)).(*json.RawMessage); raw {
		return nil
	}
	if f := wire.MakerOf[T](); f != nil {
		return f
	}
	return func(d *wire.Decoder) any {
		x := new(T)
		wire.Decode(x, d)
		return x
	}
}

type methods map[string]*method

func (t methods) of(name string) *method {
	if t[name] == nil {
		t[name] = &method{name: name}
	}
	return t[name]
}

// asks adds a request; by is who handles it.
func asks[P, R any](t methods, by party, m jsonrpc.Method[P, R]) {
	x := t.of(m.Name)
	x.request, x.asks = &codec{reader[P](), reader[R]()}, by
}

// tells adds a notification; by is who handles it.
func tells[P any](t methods, by party, n jsonrpc.Notification[P]) {
	x := t.of(n.Name)
	x.notification, x.tells = &codec{params: reader[P]()}, by
}

var methodsV1, methodsV2 = sync.OnceValue(listV1), sync.OnceValue(listV2)

// protocol returns the methods of a version.
func protocol(version int) methods {
	if version == 2 {
		return methodsV2()
	}
	return methodsV1()
}
