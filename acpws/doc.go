// Package acpws carries the Agent Client Protocol over WebSocket. [Upgrader] lets an
// [acphttp.Server] serve WebSockets at its URL, and [NewTransport] is the way to an
// agent for clients:
//
//	conn, err := client.Connect(ctx, acpws.NewTransport("wss://agents.example/acp"))
//
// It is a module of its own, so that programs that do not need it do without its
// dependency, github.com/coder/websocket.
//
// A WebSocket is one stream of messages in each direction, so the order of everything
// is what it is over pipes. When the network fails, another WebSocket takes its place if
// the server keeps what it sends; otherwise the connection ends with an
// [*acphttp.BrokenError].
package acpws
