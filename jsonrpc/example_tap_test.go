package jsonrpc_test

import (
	"context"
	"fmt"

	"github.com/goacp/acp/jsonrpc"
)

// A tap sees what passes on a connection.
func ExampleTap() {
	type number struct{ N int }
	double := jsonrpc.Method[number, number]{Name: "double"}
	mux := new(jsonrpc.Mux)
	double.Handle(mux, func(_ context.Context, n *number) (*number, error) { return &number{2 * n.N}, nil })

	here, there := jsonrpc.Pipe()
	peer := jsonrpc.NewConn(there, jsonrpc.Config{Mux: mux})
	defer peer.Close()
	conn := jsonrpc.NewConn(jsonrpc.Tap(here, func(sent bool, frame []byte) {
		fmt.Printf("sent %v: %s\n", sent, frame)
	}), jsonrpc.Config{})
	defer conn.Close()
	if _, err := double.Call(context.Background(), conn, &number{21}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// sent true: {"jsonrpc":"2.0","id":0,"method":"double","params":{"N":21}}
	// sent false: {"jsonrpc":"2.0","id":0,"result":{"N":42}}
}
