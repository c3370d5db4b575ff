// Package acp is the module root of an implementation of the Agent Client
// Protocol, JSON-RPC 2.0 between code editors and coding agents.
//
// The application interface, one program for both protocol versions, will live
// here. What works today are the layers below it:
//
//   - [github.com/goacp/acp/acpv1] and [github.com/goacp/acp/acpv2] hold every
//     type and method of protocol version 1 and of the draft of version 2;
//   - [github.com/goacp/acp/jsonrpc] is the engine that carries them.
//
// The programs in examples/rawagent and examples/rawclient show how the two
// are used together.
package acp

//go:generate go run ./internal/gen
