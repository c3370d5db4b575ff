package acpv1_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// An agent and a client on the wire, without package acp: methods are values, to be
// handled and to be called.
func Example() {
	mux := new(jsonrpc.Mux)
	acpv1.MethodInitialize.Handle(mux, func(ctx context.Context, r *acpv1.InitializeRequest) (*acpv1.InitializeResponse, error) {
		return &acpv1.InitializeResponse{ProtocolVersion: 1, AgentCapabilities: acpv1.AgentCapabilities{LoadSession: true}}, nil
	})
	here, there := jsonrpc.Pipe()
	agent := jsonrpc.NewConn(there, jsonrpc.Config{Mux: mux})
	defer agent.Close()
	client := jsonrpc.NewConn(here, jsonrpc.Config{})
	defer client.Close()

	res, err := acpv1.MethodInitialize.Call(context.Background(), client, &acpv1.InitializeRequest{ProtocolVersion: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("version", res.ProtocolVersion, "loads sessions", res.AgentCapabilities.LoadSession)
	// Output: version 1 loads sessions true
}
