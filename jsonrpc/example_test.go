package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/goacp/acp/jsonrpc"
)

type greeting struct {
	Name string `json:"name"`
}

var greet = jsonrpc.Method[greeting, greeting]{Name: "_example/greet"}

// connect returns a connection to a peer with the handlers of mux.
func connect(mux *jsonrpc.Mux, cfg jsonrpc.Config) (conn *jsonrpc.Conn, closeBoth func()) {
	here, there := jsonrpc.Pipe()
	peer := jsonrpc.NewConn(there, jsonrpc.Config{Mux: mux})
	conn = jsonrpc.NewConn(here, cfg)
	return conn, func() {
		conn.Close()
		peer.Close()
	}
}

// A method is a value: one side handles it, the other calls it.
func ExampleMethod() {
	mux := new(jsonrpc.Mux)
	greet.Handle(mux, func(ctx context.Context, g *greeting) (*greeting, error) {
		return &greeting{Name: "hello, " + g.Name}, nil
	})
	conn, done := connect(mux, jsonrpc.Config{})
	defer done()

	res, err := greet.Call(context.Background(), conn, &greeting{Name: "gopher"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Name)
	// Output: hello, gopher
}

// An *Error is what the peer said. Nothing that fails on this side is one.
func ExampleError() {
	mux := new(jsonrpc.Mux)
	greet.Handle(mux, func(ctx context.Context, g *greeting) (*greeting, error) {
		return nil, jsonrpc.ErrInvalidParams.WithData(map[string]string{"path": "params.name", "reason": "must not be empty"})
	})
	conn, done := connect(mux, jsonrpc.Config{})

	_, err := greet.Call(context.Background(), conn, new(greeting))
	var said *jsonrpc.Error
	if errors.As(err, &said) {
		fmt.Println(said.Code, said.Detail())
	}
	fmt.Println(errors.Is(err, jsonrpc.ErrInvalidParams))

	done()
	_, err = greet.Call(context.Background(), conn, new(greeting))
	fmt.Println(errors.As(err, &said), errors.Is(err, jsonrpc.ErrClosed))
	// Output:
	// -32602 params.name: must not be empty
	// true
	// false true
}

// Middleware around everything that is sent.
func ExampleMiddleware() {
	mux := new(jsonrpc.Mux)
	greet.Handle(mux, func(ctx context.Context, g *greeting) (*greeting, error) { return g, nil })
	logged := func(next jsonrpc.Handler) jsonrpc.Handler {
		return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
			res, err := next(ctx, req)
			fmt.Println(req.Method, err)
			return res, err
		}
	}
	conn, done := connect(mux, jsonrpc.Config{Settings: jsonrpc.Settings{Outgoing: []jsonrpc.Middleware{logged}}})
	defer done()
	if err := conn.Call(context.Background(), greet.Name, json.RawMessage(`{"name":"gopher"}`), nil); err != nil {
		log.Fatal(err)
	}
	_ = conn.Call(context.Background(), "nothing", nil, nil)
	// Output:
	// _example/greet <nil>
	// nothing "Method not found": nothing (-32601)
}
