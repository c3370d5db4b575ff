package acp

import (
	"context"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// testRouter routes to two agents that tell who they are.
func testRouter() *Router {
	which := func(mux *jsonrpc.Mux) {
		jsonrpc.Method[struct{}, struct{}]{Name: "_which"}.Handle(mux, func(context.Context, *struct{}) (*struct{}, error) {
			return &struct{}{}, nil
		})
	}
	return &Router{
		V1: &RouterV1{
			Initialize: func(context.Context, *acpv1.InitializeRequest) (*acpv1.InitializeResponse, error) {
				return &acpv1.InitializeResponse{ProtocolVersion: 1, AgentInfo: &acpv1.Implementation{Name: "one", Version: "1"}}, nil
			},
			Handle: which,
		},
		V2: &RouterV2{
			Initialize: func(context.Context, *acpv2.InitializeRequest) (*acpv2.InitializeResponse, error) {
				return &acpv2.InitializeResponse{ProtocolVersion: 2, Info: Implementation{Name: "two", Version: "1"}}, nil
			},
			Handle: which,
		},
	}
}
